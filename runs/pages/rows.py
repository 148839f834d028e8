"""The lines of a list of runs: each run, and what it is at in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any  # ids, and a queryset or its manager

from django.db.models import Q

from runs.engine.holding import held, wants_worker
from runs.models import Checkpoint, LedgerEntry, Run, Signal
from runs.models.archived import everywhere
from runs.pages import sentences, undoing
from runs.pages.plain import stored

HEAVY = ("body", "entries", "salt", "body_digest")  # of a checkpoint, not needed to tell what happened


@dataclass(frozen=True)
class RunRow:
    """One line of the list: the run, and what it is at in a sentence."""

    run: Run
    sentence: sentences.Sentence
    title: str

    @property
    def shown(self) -> str:
        return shown(self.run)


def rows(runs: Sequence[Run], now: datetime) -> list[RunRow]:
    """The lines for these runs, with two queries for all; one more for archived ones, and two if one wants a worker."""
    asked: dict[Any, list[LedgerEntry]] = {}
    pressing = LedgerEntry.objects.filter(run__in=runs, status__in=("open", "in_doubt")).order_by("pk")
    for entry in pressing:
        asked.setdefault(entry.run_id, []).append(entry)
    telling = [run for run in runs if run.status in ("retrying", "cancelled", "running")]
    last = _heads(Checkpoint.objects, [run for run in telling if run.archived_at is None])
    last |= _heads(everywhere(Checkpoint), [run for run in telling if run.archived_at is not None])
    due = [run for run in runs if wants_worker(run, now)]
    whys = held({(run.graph, run.version) for run in due}, now)
    why = {run.pk: whys.get((run.graph, run.version)) for run in due}
    return [
        RunRow(
            run,
            undoing.told(
                run, sentences.about(run, asked.get(run.pk, []), last.get(run.pk), now, why.get(run.pk)), None
            ),
            title(run),
        )
        for run in runs
    ]


def _heads(rows: Any, runs: Sequence[Run]) -> dict[Any, Checkpoint]:
    """The latest checkpoint of each run; no query for none."""
    heads = reduce(or_, (Q(run=run.pk, seq=run.seq) for run in runs), Q())
    return {row.run_id: row for row in rows.filter(heads).defer(*HEAVY)} if runs else {}


def refer(rows: Sequence[LedgerEntry | Signal], *names: str, among: Sequence[LedgerEntry] = ()) -> None:
    """Give rows of one run the entries that they refer to by these names, from `among` or with one query for the rest.

    Those may be in the archive, where no join finds them.
    """
    known = {entry.pk: entry for entry in among}
    wanted = {getattr(row, f"{name}_id") for row in rows for name in names} - {None}
    if missing := wanted - known.keys():
        known |= everywhere(LedgerEntry).in_bulk(missing)
    for row in rows:
        for name in names:
            if (referred := known.get(getattr(row, f"{name}_id"))) is not None:
                setattr(row, name, referred)


def title(run: Run) -> str:
    """A run's name for people: its label `title`, else its graph."""
    labels = stored(run.labels)
    named = labels.get("title") if isinstance(labels, dict) else None
    return str(named or run.graph)


def shown(run: Run) -> str:
    """The status that people see: what people refused, or let pass, is no failure of the machine."""
    return (
        run.error_kind if run.status == "failed" and run.error_kind in ("rejected", "expired") else run.status
    )
