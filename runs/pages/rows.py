"""The lines of a list of runs: each run, and what it is at in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.engine.holding import held, wants_worker
from runs.models import Checkpoint, LedgerEntry, Run
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
    """The lines for these runs, with two queries for all of them, and two more if one wants a worker."""
    asked: dict[Any, list[LedgerEntry]] = {}
    pressing = LedgerEntry.objects.filter(run__in=runs, status__in=("open", "in_doubt")).order_by("pk")
    for entry in pressing:
        asked.setdefault(entry.run_id, []).append(entry)
    heads = Checkpoint.objects.none()
    for run in runs:
        if run.status in ("retrying", "cancelled", "running"):
            heads |= Checkpoint.objects.filter(run=run.pk, seq=run.seq)
    last = {checkpoint.run_id: checkpoint for checkpoint in heads.defer(*HEAVY)}
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
