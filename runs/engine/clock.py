"""The one clock: the database's, read after the lock; on SQLite the host's.

A worker's times in between are a reading plus its own monotonic clock, one that also runs while the host sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import connection

AHEAD = timedelta()  # runs.testing moves it; always zero in production
skip: Callable[[float], None] | None = None  # runs.testing: moves the clock where production waits

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> datetime:
    """The database's time, with its zone."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            return cursor.fetchone()[0].astimezone(UTC) + AHEAD
    return datetime.now(UTC) + AHEAD


def elapsed() -> float:
    """Seconds on a clock that never goes back and counts the host's sleep."""
    passed = time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
    return passed + AHEAD.total_seconds() if AHEAD else passed


def to_sleep(seconds: float) -> float:
    """How long to really sleep for a pause of that length: all of it, unless a test moves the clock instead."""
    if skip is None:
        return seconds
    skip(seconds)
    return 0.0


class Reading:
    """A reading of the database's clock, carried on by the monotonic one."""

    __slots__ = ("at", "since")

    def __init__(self, at: datetime) -> None:
        self.at, self.since = at, elapsed()

    def now(self) -> datetime:
        return self.at + timedelta(0, elapsed() - self.since)
