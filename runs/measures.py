"""Numbers about runs for whoever watches an installation: what waits for a worker, and what for an operator.

However many runs there are, each look is bounded: it counts up to MOST, and goes from queue to queue by their index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q

from runs.engine import holding
from runs.models import GraphVersion, LedgerEntry, Run
from runs.models.entry import IN_DOUBT
from runs.models.statuses import FAILED, LIVE, WAITING

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from runs.models.run_rows import RunQuerySet

MOST = 100_000
MOST_QUEUES = 200  # and priorities of them

MEANINGS = {
    "runs_created": "Runs that no worker has taken yet.",
    "runs_running": "Runs that a worker drives, or is about to.",
    "runs_waiting": "Runs that wait for people, signals, timers or children.",
    "runs_retrying": "Runs that will be tried again, or wait in line for the rate of a tool.",
    "runs_due": "Runs that a worker could take now.",
    "runs_oldest_due_seconds": "For how long the one of them that is due longest has been.",
    "runs_held": "Live runs that want a worker, and whose version none serves: they need a deploy or a migration.",
    "runs_to_repair": "Failed runs that nobody has closed, without those that people rejected or let expire.",
    "runs_poison": "Those of them that killed their workers.",
    "effects_in_doubt": "Calls that were sent, and of which nobody knows whether they happened.",
}


def measures(now: datetime) -> dict[str, float]:
    """Over all runs. A number that reaches MOST says: at least so many."""
    found: dict[str, float] = {
        f"runs_{status}": _at_most(Run.objects.filter(status=status)) for status in LIVE
    }
    due = [place for place in _places() if place.first_at <= now]
    found["runs_due"] = sum(_at_most(place.runs.filter(wake_at__lte=now)) for place in due)
    found["runs_oldest_due_seconds"] = max(
        [(now - place.first_at).total_seconds() for place in due], default=0.0
    )
    found["runs_held"] = _held(now)
    newest = Run.objects.filter(status=FAILED).order_by("-id")[:MOST]
    to_repair = Q(closed_at=None) & ~Q(error_kind__in=("rejected", "expired"))
    failed = newest.aggregate(
        to_repair=Count("pk", filter=to_repair), poison=Count("pk", filter=to_repair & Q(error_kind="poison"))
    )
    found["runs_to_repair"], found["runs_poison"] = failed["to_repair"], failed["poison"]
    found["effects_in_doubt"] = _at_most(LedgerEntry.objects.filter(status=IN_DOUBT))
    return found


def _at_most(rows: QuerySet[Any]) -> int:
    return rows.order_by()[:MOST].count()


@dataclass(frozen=True, slots=True)
class _Place:
    """One priority of one queue, and when the first of its runs is or was due."""

    queue: str
    priority: int
    first_at: datetime

    @property
    def runs(self) -> RunQuerySet:
        return Run.objects.filter(queue=self.queue, priority=self.priority)


def _places() -> Iterator[_Place]:
    """Each is found by one or two looks into the index of what is due."""
    place = _first(Q())
    for _number in range(MOST_QUEUES):
        if place is None:
            return
        yield place
        place = _first(Q(queue=place.queue, priority__gt=place.priority)) or _first(Q(queue__gt=place.queue))


def _first(where: Q) -> _Place | None:
    awake = Run.objects.filter(where, wake_at__isnull=False).order_by("queue", "priority", "wake_at")
    row = awake.values_list("queue", "priority", "wake_at").first()
    return None if row is None else _Place(*row)


def _held(now: datetime) -> int:
    """Only where a version that runs were started on is served by nobody are there any to count."""
    pairs = holding.held(GraphVersion.objects.values_list("graph", "version"), now)
    if not pairs:
        return 0
    of_these = Q()
    for graph, version in pairs:
        of_these |= Q(graph=graph, version=version)
    wanting = ~Q(status=WAITING) | Q(wake_at__lte=now + holding.MOVED_ON)
    live = Run.objects.filter(status__in=LIVE, leased_by=None, wake_at__isnull=False).order_by("-id")[:MOST]
    return live.aggregate(held=Count("pk", filter=of_these & wanting))["held"]
