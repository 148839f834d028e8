"""What the commands share: JSON given as text, @file or -, people by name, and refusals as one clear line."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # inputs are any JSON

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from runs.core.errors import DurableError
from runs.core.words import is_storable
from runs.errors import Invalid, Refusal

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_LINE = 1_000


def about_a_run(parser: argparse.ArgumentParser, reason: str = "") -> None:
    """What each command about one run takes: which run, why (`reason` is what the help says of it), and --json."""
    parser.add_argument("run", help="its id, or the last six digits of it")
    if reason:
        parser.add_argument("--reason", required=True, help=reason)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def shell() -> str:
    """For the trail: who types a command acts as the account of its process, by number where that has no name."""
    try:
        return f"shell of {getpass.getuser()}"
    except (KeyError, OSError):
        return f"shell of {os.getuid()}"


@contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except Invalid as refusal:
        fields = "; ".join(f"{path}: {' '.join(wrong)}" for path, wrong in refusal.fields.items())
        more = f" {fields}" if fields and fields not in refusal.message else ""
        raise CommandError(one_line(f"{refusal.message}{more}")) from refusal
    except (Refusal, DurableError) as refusal:
        raise CommandError(one_line(str(refusal))) from refusal


def given_json(text: str, option: str) -> Any:
    """The value of JSON, @file or - (standard input). Raises CommandError naming the option and the place."""
    source = option
    try:
        if text == "-":
            source, text = f"{option} -", sys.stdin.read()
        elif text.startswith("@"):
            source, text = f"{option} {text}", Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise CommandError(one_line(f"{source} is not JSON: {error.msg} at {place}.")) from error
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CommandError(one_line(f"{source} cannot be read: {error}")) from error


def person_named(username: str, option: str = "--by") -> User:
    users = get_user_model().objects.filter(username=username, is_active=True)
    person = users.first() if is_storable(username) else None
    if person is None:
        raise CommandError(one_line(f"{option}: there is no active user {username!r}."))
    return person


def as_json(value: Any) -> str:
    """For a terminal and for programs: what would act on a terminal, or cannot be written, is an escape of JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """For a terminal: line ends and what would act on it are spelled out."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """An error as one line that can be read, whatever it quotes."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    [(name, times), *_others] = Counter(name for name, _value in pairs).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(f"the name {name!r} is there twice in one object")
    return dict(pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
