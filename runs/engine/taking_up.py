"""Children that were cancelled with their parent, or went on without it: a repaired parent that asks for them again
takes them up where they stand, and starts none of them a second time.

Their entry was closed when the parent ended. It is open again, or answered where they have ended by themselves; and
whoever was cancelled with the parent goes on. All under the parent's lock, in its worker's commits.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef

from runs.core.errors import Permanent
from runs.engine import compensating
from runs.engine.mending import bring_back, entries_of_step
from runs.engine.telling import BY, CLOSED, answer, end_of
from runs.models.checkpoint import Checkpoint
from runs.models.entry import IN_DOUBT, OPEN, LedgerEntry
from runs.models.fan_out import FanOut
from runs.models.run import Run, RunQuerySet
from runs.models.statuses import CANCELLED, LIVE


def take_up(parent: Run, entry: LedgerEntry, now: datetime) -> None:
    """One child's entry."""
    child, _ = Run.objects.lock(entry.child_id)
    go_on(parent, child, now)
    _reopen(entry)
    if child.told:
        answer(LedgerEntry.objects.filter(pk=entry.pk), end_of(child), now)


def take_up_some(parent: Run, entry: LedgerEntry, after: int, most: int, now: datetime) -> int:
    """Of a fan-out: children whose item is after that, at most so many; the last one's item. With the last of them the
    entry is open again, or answered; until then nobody releases any, whatever ends of those that go on already.

    Those whose turn had not come wait for it as before.
    """
    fan_out = FanOut.objects.get(entry=entry)
    some = _were_cancelled(Run.objects.filter(fan_out=fan_out, item__gt=after)).order_by("item")[:most]
    children = list(some.select_for_update(of=("self",)))
    for child in children:
        fan_out.count(child, by=-1)
        go_on(parent, child, now, its_turn=child.item < fan_out.released)
        if child.told:
            fan_out.count(child)
    is_last = len(children) < most
    if is_last:
        fan_out.release(now)
    fan_out.save()
    if not is_last:
        return children[-1].item
    _reopen(entry)
    if fan_out.ended == fan_out.total:
        answer(LedgerEntry.objects.filter(pk=entry.pk), fan_out.counts, now)
    return fan_out.total


def go_on(parent: Run, child: Run, now: datetime, its_turn: bool = True) -> None:
    """A locked child that was cancelled with its parent goes on, and its next end is told; another is left as it is."""
    if child.told != CANCELLED or not _were_cancelled(Run.objects.filter(pk=child.pk)).exists():
        return
    if child.status == CANCELLED and (_last_cancelled_by(child) != BY or compensating.has_begun(child)):
        return
    if child.status == CANCELLED and its_turn:
        revive(parent, child, now)
    child.told = "" if child.status in (*LIVE, CANCELLED) else child.status  # it has been repaired by itself
    Run.objects.filter(pk=child.pk).update(told=child.told, told_kind="")


def revive(parent: Run, child: Run, now: datetime) -> None:
    """Raises Permanent where somebody has to say first what became of something that it did."""
    entries = entries_of_step(child)
    if doubted := [entry.key for entry in entries if entry.status == IN_DOUBT]:
        raise Permanent(
            f"child {child.short_id}: whether {', '.join(doubted)} happened is in doubt; settle it first"
        )
    bring_back(child, entries, now, actor=BY, reason=f"Its parent, run {parent.short_id}, goes on.")


def _were_cancelled(children: RunQuerySet) -> RunQuerySet:
    """With their parent, which was told so."""
    cancelled = Checkpoint.objects.filter(run=OuterRef("pk"), kind="cancel", actor=BY)
    return children.filter(Exists(cancelled), told=CANCELLED)


def _last_cancelled_by(child: Run) -> str:
    cancels = Checkpoint.objects.filter(run=child, kind="cancel").order_by("-seq")
    return cancels.values_list("actor", flat=True)[0]


def _reopen(entry: LedgerEntry) -> None:
    closed = LedgerEntry.objects.filter(pk=entry.pk, status=CLOSED)
    closed.update(status=OPEN, answered_at=None, answered_by="", effective_at=None, taken_at=None)
