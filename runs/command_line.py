"""What the commands share: JSON given as text, @file or -, people by name, and refusals as one clear line."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn  # inputs are any JSON

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.checks import Tags
from django.core.exceptions import NON_FIELD_ERRORS
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from runs.checks import ENGINE
from runs.core.errors import DurableError
from runs.core.words import is_storable
from runs.errors import Invalid, NotAllowed, Refusal
from runs.models import Run
from runs.sight import may_operate

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_LINE = 1_000


class OneLineCommand(BaseCommand):
    """The base of our commands: whatever is wrong is one line, mistyped words too; --help tells the usage."""

    # Not those of addresses and admin, which load all pages: a start would take half as long again. `check` makes them.
    requires_system_checks = (
        ENGINE,
        Tags.caches,
        Tags.compatibility,
        Tags.files,
        Tags.models,
        Tags.security,
        Tags.translation,
    )
    typed: Mapping[str, str] = {}  # how each parameter is typed: at_once as --at-once, graph as GRAPH

    def create_parser(self, prog_name: str, subcommand: str, **more: Any) -> Any:
        parser = super().create_parser(prog_name, subcommand, **more)
        self.typed = {one.dest: [one.dest.upper(), *one.option_strings][-1] for one in parser._actions}
        parser.error = partial(_refuse_words, parser)
        return parser

    def refuse(self, words: str) -> NoReturn:
        raise CommandError(one_line(words))

    @contextmanager
    def one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except Invalid as refusal:
            raise CommandError(one_line(told_by_field(refusal, self.typed))) from refusal
        except (Refusal, DurableError) as refusal:
            raise CommandError(one_line(str(refusal))) from refusal


def _refuse_words(parser: Any, message: str) -> NoReturn:
    if parser.called_from_command_line:
        parser.exit(2, f"{one_line(f'{parser.prog}: {message}')}\n")
    raise CommandError(one_line(f"Error: {message}"))


def migrations_to_apply() -> list[str]:
    """Those that the database lacks, in order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _backwards in plan]


def refuse_unmigrated() -> None:
    """No run is driven on rows that this code does not know yet."""
    if lacks := migrations_to_apply():
        raise CommandError(
            f"The database lacks {len(lacks)} of the migrations, first {lacks[0]}: run manage.py migrate."
        )


def about_a_run(parser: argparse.ArgumentParser, reason: str = "") -> None:
    """What each command about one run takes: which run, why (`reason` is what the help says of it), and --json."""
    parser.add_argument("run", help="its id, or the last six or more digits of it")
    if reason:
        parser.add_argument("--reason", required=True, help=reason)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def shell() -> str:
    """For the trail: who types a command acts as the account of its process, by number where that has no name."""
    try:
        return f"shell of {getpass.getuser()}"
    except (KeyError, OSError):
        return f"shell of {os.getuid()}"


def of_operator(parser: argparse.ArgumentParser) -> None:
    """What each command takes that people may ask for only if they operate the graph."""
    parser.add_argument("--by", help="user name of who asked for it; left out, the user of the shell")


def for_operator(run: Run, username: str | None) -> str:
    """For the trail: the shell, and for whom. Raises NotAllowed where that person may not operate the run's graph."""
    by = shell()
    if username is None:
        return by
    person = person_named(username)
    if not may_operate(person, run):
        raise NotAllowed(f"{username} may not repair runs of {run.graph}.")
    return f"user {person.get_username()} ({by})"


def told_by_field(refusal: Invalid, typed: Mapping[str, str]) -> str:
    """What is wrong with each field, named as it is `typed`, after the headline, unless that says no more."""
    said = {path: " ".join(wrong) for path, wrong in refusal.fields.items()}
    fields = " ".join(_sentence(typed.get(path, path), wrong) for path, wrong in said.items())
    in_a_value = any(path.startswith("$") for path in said)  # $.to[0]: the headline says of what
    if all(wrong in refusal.message for wrong in said.values()):
        return fields if said and not in_a_value else refusal.message
    first, wrong = next(iter(said.items()))
    return fields if f"{first}: {wrong}" in refusal.message else f"{refusal.message} {fields}"


def _sentence(name: str, wrong: str) -> str:
    said = wrong if name == NON_FIELD_ERRORS else f"{name}: {wrong}"
    return said if said.endswith((".", "!", "?")) else f"{said}."


def number_of(number: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


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
