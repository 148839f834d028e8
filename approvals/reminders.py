"""When a person is reminded of a deadline: once three quarters of the time have passed, and in the last hour."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

SHARE = 0.75
LAST = timedelta(hours=1)


def next_reminder(opened_at: datetime, due_at: datetime | None, after: datetime) -> datetime | None:
    """The first moment for a reminder that is later than `after`; None where there is none, or no deadline."""
    if due_at is None:
        return None
    moments = sorted((opened_at + SHARE * (due_at - opened_at), due_at - LAST))
    return next((moment for moment in moments if after < moment < due_at), None)


def is_last_hour(due_at: datetime, now: datetime) -> bool:
    return due_at - now <= LAST
