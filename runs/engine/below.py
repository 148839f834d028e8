"""What runs and those below them have done, wherever their rows stand."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db.models import Q

from runs.core.spending import NAME, Spent, told_by
from runs.models.archived import everywhere
from runs.models.entry import CHILD, DONE, EFFECT, VALUE, LedgerEntry
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


def spent_by(run_id: uuid.UUID, until: datetime | None) -> Spent:
    """What a run and all below it have recorded as spent, whatever became of the step. `until` when: an answer that is
    read anew is the same, also after a repair."""
    total, runs = Spent(), Run.objects.filter(pk=run_id)
    while runs.exists():
        told = everywhere(LedgerEntry).filter(run__in=runs.values("pk"), kind=VALUE, name=NAME, status=DONE)
        for entry in (told if until is None else told.filter(answered_at__lte=until)).order_by("run", "id"):
            total += told_by(entry.result or "null")
        runs = Run.objects.filter(parent__in=runs.values("pk"))
    return total
