"""Until when: a time from now, or a moment."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any  # what an author gives is checked here

from runs.core.errors import Permanent

Until = timedelta | datetime
YEARS = range(2, 9999)  # in every zone such a moment has a date


def check_until(until: Any, what: str) -> None:
    """Raises Permanent, naming `what` it is for, unless it is a timedelta or a datetime with its zone."""
    if not isinstance(until, (timedelta, datetime)):
        raise Permanent(f"{what}: {until!r} is no time; give a timedelta, or a datetime with its zone")
    if isinstance(until, datetime) and until.utcoffset() is None:
        raise Permanent(f"{what}: {until!r} has no zone; give a datetime with its zone")


def moment_of(until: Until | None, now: datetime) -> datetime | None:
    """The moment meant by something that begins now. Raises Permanent beyond the ends of the calendar."""
    try:
        moment = now + until if isinstance(until, timedelta) else until
    except OverflowError:
        raise Permanent(f"{until} from now is beyond the end of the calendar; give a shorter time") from None
    if moment is not None and moment.year not in YEARS:
        raise Permanent(f"{moment} is at the end of the calendar; leave the time out to wait for ever")
    return moment


def plain(until: Until | None) -> Any:
    """As a request keeps it: seconds, or the moment itself."""
    return until.total_seconds() if isinstance(until, timedelta) else until
