"""Children that go on when their parent ends: a repair takes up the entries that have started them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from runs.core import repair
from runs.engine.entry_rows import entry_of
from runs.engine.telling import answer, end_of
from runs.models.entry import CHILD, OPEN, LedgerEntry
from runs.models.fan_out import FanOut
from runs.models.run import Run


def take_up_children(entries: Iterable[LedgerEntry], now: datetime) -> None:
    """Under the Run lock. Closed when their run ended, they are open again, or answered where the children have ended.

    So the next execution finds the same children, and starts none a second time.
    """
    for entry in entries:
        if entry.kind == CHILD and entry.status == "cancelled" and repair.is_detached(entry_of(entry)):
            _reopen(entry)
            _answer(entry, now)
            entry.refresh_from_db()


def _reopen(entry: LedgerEntry) -> None:
    closed = LedgerEntry.objects.filter(pk=entry.pk, status="cancelled")
    closed.update(status=OPEN, answered_at=None, answered_by="", effective_at=None, taken_at=None)


def _answer(entry: LedgerEntry, now: datetime) -> None:
    """With what its children have told meanwhile: they do so under this very lock."""
    mine = LedgerEntry.objects.filter(pk=entry.pk)
    if entry.child_id is not None:
        child = Run.objects.get(pk=entry.child_id)
        if child.told:
            answer(mine, end_of(child), now)
        return
    fan_out = FanOut.objects.get(entry=entry)
    if fan_out.ended == fan_out.total:
        answer(mine, fan_out.counts, now)
