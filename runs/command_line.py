"""What the commands share: JSON given as text, @file or -, people by name, and refusals as one clear line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # inputs are any JSON

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from runs.core.errors import DurableError
from runs.errors import Invalid, Refusal


@contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except Invalid as refusal:
        fields = "; ".join(f"{path}: {' '.join(wrong)}" for path, wrong in refusal.fields.items())
        more = f" {fields}" if fields and fields not in refusal.message else ""
        raise CommandError(" ".join(f"{refusal.message}{more}".split())) from refusal
    except (Refusal, DurableError) as refusal:
        raise CommandError(" ".join(str(refusal).split())) from refusal


def given_json(text: str, option: str) -> Any:
    """The value of JSON, @file or - (standard input). Raises CommandError naming the option and the place."""
    source = option
    try:
        if text == "-":
            source, text = f"{option} -", sys.stdin.read()
        elif text.startswith("@"):
            source, text = f"{option} {text}", Path(text[1:]).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise CommandError(f"{source} is not JSON: {error.msg} at {place}.") from error
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CommandError(f"{source} cannot be read: {error}") from error


def person_named(username: str, option: str = "--by") -> User:
    person = get_user_model().objects.filter(username=username, is_active=True).first()
    if person is None:
        raise CommandError(f"{option}: there is no active user {username!r}.")
    return person


def as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
