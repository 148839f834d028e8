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


def asking(family: list[Run]) -> list[Run]:
    """Those of them that have a question to people, or a wait for a signal, open."""
    live = [run for run in family if not run.ended]
    open_ones = LedgerEntry.objects.filter(run__in=live, kind__in=(INTERRUPT, SIGNAL), status=OPEN)
    those = set(open_ones.values_list("run_id", flat=True))
    return [run for run in live if run.pk in those]


def next_due(family: list[Run]) -> Run | None:
    due = [run for run in family if not run.ended and run.wake_at is not None]
    return min(due, key=lambda run: run.wake_at, default=None)
