"""An ended run goes on: what that is for its own rows. Whoever calls it has the locks, and knows that it may.

A repair brings back the run itself (repairing.py); and its children, once it asks for them again (taking_up.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any  # column values

from django.utils.translation import gettext_lazy as _

from runs.core import repair
from runs.engine.closing import line_of
from runs.engine.entry_rows import entry_of
from runs.engine.transition import given_to_workers, move
from runs.errors import Conflict, told
from runs.models.checkpoint import Checkpoint
from runs.models.entry import DONE, LedgerEntry
from runs.models.run import Run

KIND = "repair"


def entries_of_step(run: Run) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(run=run, step=run.step + 1).order_by("id"))


def bring_back(
    run: Run,
    entries: list[LedgerEntry],
    now: datetime,
    *,
    actor: str,
    reason: str,
    body: str = "",
    snapshot: bool = False,
    **changes: Any,
) -> Checkpoint:
    """It is due now. What had stopped its step is put aside; `entries` are those of that step."""
    _put_aside(run, entries)
    _take(entries, now)
    return move(
        run,
        KIND,
        now,
        actor=actor,
        reason=reason,
        body=body,
        snapshot=snapshot,
        lines=map(line_of, entries),
        error_kind="",
        error="",
        finished_at=None,
        closed_at=None,
        **given_to_workers(run, now),
        **changes,
    )


def _put_aside(run: Run, entries: Iterable[LedgerEntry]) -> None:
    past = {entry.id for entry in repair.set_aside(map(entry_of, entries), run.error_kind)}
    if past and LedgerEntry.objects.filter(pk__in=past, aside=False).update(aside=True) != len(past):
        raise Conflict(told(_("Run %(run)s has moved on; look at it again."), run=run.short_id))


def _take(entries: Iterable[LedgerEntry], now: datetime) -> None:
    """An answer that nobody had taken became final when the run ended."""
    untaken = [entry for entry in entries if entry.status == DONE and entry.taken_at is None]
    for entry in untaken:
        entry.taken_at = now
    LedgerEntry.objects.filter(pk__in=[entry.pk for entry in untaken]).update(taken_at=now)
