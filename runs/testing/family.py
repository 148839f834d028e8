"""The runs that a kit drives beside the one it was asked for: its descendants."""

from __future__ import annotations

from runs.models.entry import INTERRUPT, OPEN, SIGNAL, LedgerEntry
from runs.models.run import Run, RunQuerySet


def family_of(run: Run) -> RunQuerySet:
    """The run and all its descendants."""
    if run.pk == run.root:
        return Run.objects.filter(root=run.root)
    found, latest = {run.pk}, {run.pk}
    while latest := set(Run.objects.filter(parent__in=latest).values_list("pk", flat=True)):
        found |= latest
    return Run.objects.filter(pk__in=found)


def asking(family: RunQuerySet) -> RunQuerySet:
    """Those of them that have a question to people, or a wait for a signal, open."""
    open_ones = LedgerEntry.objects.filter(run__in=family, kind__in=(INTERRUPT, SIGNAL), status=OPEN)
    return family.live().filter(pk__in=open_ones.values("run")).order_by("id")


def next_due(family: RunQuerySet) -> Run | None:
    return family.live().exclude(wake_at=None).order_by("wake_at", "id").first()
