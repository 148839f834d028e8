"""Secrets come from the environment: DURABLEWEB_SECRET_<NAME>. Rows hold references, never values."""

from __future__ import annotations

import os
from functools import cache

from runs.core.errors import Permanent
from runs.core.secrets import Guard

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


def reveal(name: str) -> str:
    """The value, for the moment of a call. Raises Permanent naming the variable to set."""
    try:
        return known()[name]
    except KeyError:
        raise Permanent(
            f"secret {name!r} is not set; set {PREFIX}{name} in the worker's environment"
        ) from None


def forget() -> None:
    """Read the environment anew (tests set secrets while the process lives)."""
    known.cache_clear()
    guard.cache_clear()
