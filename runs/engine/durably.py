"""Commits that a passing fault of the database must not turn into a failure of the node (cases E13, E14)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

from runs.core.outcomes import Lost, Stop
from runs.engine import clock

log = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 12
LONGEST_PAUSE_SECONDS = 2.0
FAULTS = (OperationalError, InterfaceError)


def durably(act: Callable[[], T], again: Callable[[], T] | None = None) -> T:
    """Do `act`; on a lost connection, deadlock, serialization failure or lock time-out do it once more, and again.

    `again` is done instead of `act` from the second try on: the first may have committed before its answer was lost,
    so it looks for that first. Inside an outer transaction nothing is retried: only its owner can begin it anew.
    """
    try:
        return act()
    except FAULTS as error:
        return _again(again or act, error)


def _again(act: Callable[[], T], error: Exception) -> T:
    for number in range(1, TRIES):
        if connection.in_atomic_block or not passing(error):
            raise error
        log.warning("The database did not take a commit (%s); trying again", error)
        connection.close()
        time.sleep(clock.to_sleep(min(0.02 * 2**number, LONGEST_PAUSE_SECONDS)))
        try:
            return act()
        except FAULTS as anew:
            error = anew
    raise error


def passing(error: Exception) -> bool:
    """Whether trying again may help. SQLite calls a missing table "operational" as well."""
    if connection.vendor != "sqlite":
        return True
    return any(word in str(error) for word in ("locked", "busy", "disk I/O", "unable to open", "closed"))


def durably_or_lost(
    act: Callable[[], T], again: Callable[[], T] | None = None, after: Exception | None = None
) -> T:
    """For a worker inside a node: a database that stays away ends the drive, and is never the node's failure.

    `after`: how the first try, which was made already, has failed.
    """
    try:
        return durably(act, again) if after is None else _again(act, after)
    except FAULTS as error:
        raise Stop(Lost(f"the database did not take a commit: {error}")) from error
