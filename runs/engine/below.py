"""What the runs below some entries have done, wherever their rows stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import Q

from runs.models.archived import everywhere
from runs.models.entry import CHILD, EFFECT, LedgerEntry
from runs.models.run import Run


def writes_below(entries: Iterable[LedgerEntry], statuses: tuple[str, ...]) -> Iterator[LedgerEntry]:
    """The writes with these statuses of the runs that the entries have started, and of all below those."""
    started = [entry for entry in entries if entry.kind == CHILD]
    alone = [entry.child_id for entry in started if entry.child_id is not None]
    runs = Run.objects.filter(Q(pk__in=alone) | Q(fan_out__entry__in=[entry.pk for entry in started]))
    while started and runs.exists():
        of_these = everywhere(LedgerEntry).filter(run__in=runs.values("pk"), kind=EFFECT, write=True)
        yield from of_these.filter(status__in=statuses).order_by("run", "id")
        runs = Run.objects.filter(parent__in=runs.values("pk"))
