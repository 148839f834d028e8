"""What a waiting run waits for: whether it is all there, when to look again, and the answers that a claim takes."""

from __future__ import annotations

from datetime import datetime, timedelta

from runs.engine.closing import line_of
from runs.models.entry import EFFECT, IN_DOUBT, INTERRUPT, OPEN, SIGNAL, TIMER, LedgerEntry
from runs.models.run import Run

A_WHILE = timedelta(seconds=1)


def may_go_on(run: Run, entries: list[LedgerEntry], now: datetime) -> bool:
    """Whether what a waiting run waits for is complete and effective; if not, it parks again, silently."""
    awaited = [entry for entry in entries if entry.awaited]
    for entry in awaited:
        if entry.kind == INTERRUPT and entry.status == OPEN and _passed(entry.due_at, now):
            entry.expire(run, now)
        elif entry.kind in (SIGNAL, TIMER) and entry.status == OPEN:
            entry.look(now)
    if all(_ready(entry, now) for entry in awaited):
        return True
    look = next_look(awaited, now)
    if look is not None and look <= now:
        look = now + A_WHILE  # whatever that was: nobody looks at it twice in the same moment
    Run.objects.filter(pk=run.pk).update(wake_at=look)
    return False


def next_look(awaited: list[LedgerEntry], now: datetime) -> datetime | None:
    """The earliest open deadline; and only if every one is answered, the latest moment they become effective.

    A call that was under way until a moment that has passed keeps nobody from waiting for the others. What is in doubt
    a person ends, at no moment that is known.
    """
    missing = [entry for entry in awaited if not _ready(entry, now)]
    if not missing:
        return now if awaited else None
    unanswered = [entry for entry in missing if entry.status in (OPEN, IN_DOUBT)]
    moments = [entry.due_at for entry in unanswered if entry.status == OPEN and entry.due_at is not None]
    if not unanswered:
        moments.append(max(entry.effective_at for entry in missing))
    return min(moments, default=None)


def _ready(entry: LedgerEntry, now: datetime) -> bool:
    if entry.kind == EFFECT and entry.status == OPEN:
        return entry.tried_at is None or _passed(entry.due_at, now)
    if entry.status in (OPEN, IN_DOUBT):
        return False
    return entry.effective_at is None or entry.effective_at <= now


def _passed(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def take_answers(entries: list[LedgerEntry], now: datetime) -> list[list[object]]:
    """Stamp what is answered and effective; from here on it cannot be undone."""
    taken = [e for e in entries if e.taken_at is None and e.status not in (OPEN, IN_DOUBT) and _ready(e, now)]
    for entry in taken:
        entry.taken_at = now
    LedgerEntry.objects.filter(pk__in=[entry.pk for entry in taken]).update(taken_at=now)
    return [line_of(entry) for entry in taken]
