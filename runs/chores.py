"""Due work beside runs: rows with a moment at which something is to be done about them, once.

What is due is told from rows alone, as a run's `wake_at` tells it: a moment in the past. Whoever takes a row moves its
moment ahead by the lease; the work itself then sets the next moment, or none. So work that failed, or whose worker
died, is due again when its lease ends. Shifts do what is due (also those of `tick`), and the bell rings for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any  # primary keys

from django.db import connection, models, transaction

from runs.engine import clock
from runs.engine.durably import durably

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Chore:
    """`rows` are those that the chore may ever be about, `moment` the column that says when; `do` takes one row's key.

    `do` must set the row's moment, in the transaction of what it writes; `lease` is the longest that it may take.
    """

    name: str
    rows: Callable[[], models.QuerySet[Any]]
    moment: str
    do: Callable[[Any], object]
    lease: timedelta = LEASE

    def due(self, now: datetime) -> models.QuerySet[Any]:
        """The longest due first."""
        return self.rows().filter(**{f"{self.moment}__lte": now}).order_by(self.moment)

    def take(self, now: datetime) -> Any:
        """The key of the row that is due longest, ours until the lease ends; None where nothing is due."""
        for key, moment in self.due(now).values_list("pk", self.moment)[:5]:
            ours = self.rows().filter(pk=key, **{self.moment: moment})
            with transaction.atomic():
                if ours.update(**{self.moment: now + self.lease}):
                    return key
        return None


_chores: dict[str, Chore] = {}


def also(chore: Chore) -> None:
    """Register; an app does so when it is ready."""
    _chores[chore.name] = chore


def known() -> Iterator[Chore]:
    yield from _chores.values()


def are_due(now: datetime) -> bool:
    return any(chore.due(now).exists() for chore in _chores.values())


def do_due(over: Callable[[], bool] = lambda: False) -> int:
    """Do all that is due, one row after the other, until `over()`; how many were done without a fault.

    One row of each chore in turn, so that much of one, or what is slow, holds up no other for long.
    """
    done, due = 0, list(_chores.values())
    while due:
        for chore in list(due):
            if over():
                return done
            key = durably(lambda chore=chore: chore.take(clock.now()))
            if key is None:
                due.remove(chore)
            else:
                done += _do(chore, key)
    return done


def _do(chore: Chore, key: Any) -> bool:
    try:
        chore.do(key)
    except Exception:
        log.exception("Chore %s: %s failed, and is tried again in %s", chore.name, key, chore.lease)
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        return False
    return True
