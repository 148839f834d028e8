"""What is stopped and what is limited, as a process knows it: looked up once a second, so that no claim pays for it."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Q

from runs.engine import clock
from runs.engine.durably import durably
from runs.models.limits import QueueLimit
from runs.models.run import RunQuerySet

LOOK_SECONDS = 1.0  # and a stop holds within two
ORDERS = "SELECT 'stop', graph FROM runs_graphstop UNION ALL SELECT 'limit', queue FROM runs_queuelimit"


class Standing:
    def __init__(self) -> None:
        self.stopped: frozenset[str] = frozenset()  # graphs
        self.limited: frozenset[str] = frozenset()  # queues
        self.looked_at: float | None = None

    def look(self) -> Standing:
        if self.looked_at is None or clock.elapsed() - self.looked_at >= LOOK_SECONDS:
            found = durably(_orders)
            self.stopped = frozenset(name for kind, name in found if kind == "stop")
            self.limited = frozenset(name for kind, name in found if kind == "limit")
            self.looked_at = clock.elapsed()
        return self

    def takable(self, runs: RunQuerySet, now: datetime) -> RunQuerySet:
        """Those that a claim would take, or recover: so nobody is rung for what must wait."""
        left = Q(leased_by__isnull=False)
        if self.stopped:
            runs = runs.filter(left | ~Q(graph__in=self.stopped))
        if self.limited:
            for limit in QueueLimit.objects.filter(queue__in=self.limited):
                runs = runs.filter(~Q(queue=limit.queue) | left | limit.room(now).admits())
        return runs


def _orders() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(ORDERS)
        return cursor.fetchall()
