"""Secrets come from the environment: DURABLEWEB_SECRET_<NAME>. Rows hold references, never values."""

from __future__ import annotations

import logging
import os
from functools import cache

from runs.core.codec_tree import Plain
from runs.core.errors import Permanent
from runs.core.secrets import Guard
from runs.errors import Invalid

PREFIX = "DURABLEWEB_SECRET_"
RESERVED = {"DURABLEWEB_SECRET_KEY"}


@cache
def known() -> dict[str, str]:
    return {
        name.removeprefix(PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name not in RESERVED and value
    }


@cache
def guard() -> Guard:
    return Guard(known())


def refuse(text: str, field: str) -> None:
    """Raises Invalid naming the field in which a known secret's value stands; never the value."""
    if (name := guard().find(text)) is not None:
        fault = f"This holds the value of the secret {name}; take it out."
        raise Invalid(f"{field}: {fault}", {field: [fault]})


def refuse_in(tree: Plain) -> None:
    """The same of a tree, naming the path."""
    if (found := guard().locate(tree)) is not None:
        path, name = found
        fault = f"This holds the value of the secret {name}; take it out."
        raise Invalid(f"{path}: {fault}", {path: [fault]})


def reveal(name: str) -> str:
    """The value, for the moment of a call. Raises Permanent naming the variable to set."""
    try:
        return known()[name]
    except KeyError:
        raise Permanent(
            f"secret {name!r} is not set; set {PREFIX}{name} in the worker's environment"
        ) from None


class LogFormatter(logging.Formatter):
    """Writes the log without the values of secrets, whoever put them into a message or an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return guard().redact(super().format(record))


def forget() -> None:
    """Read the environment anew (tests set secrets while the process lives)."""
    known.cache_clear()
    guard.cache_clear()
