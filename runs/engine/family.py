"""What the end of a run means to its family: its parent is told, the next child's turn comes, its children end too.

Lock order: ancestors before descendants. So whoever may end a run locks its parent first (`lock_with_parent`), and a
run's children are cancelled later, in transactions of their own, by whoever does chores.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from runs import chores, hooks
from runs.core import codec
from runs.engine import clock, sql
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.models.entry import CHILD, DONE, OPEN, LedgerEntry, wake
from runs.models.fan_out import FanOut
from runs.models.run import Run, RunQuerySet
from runs.models.statuses import CANCELLED, FAILED, LIVE

AT_A_TIME = 25  # children cancelled in one transaction
LONGEST_SECONDS = 20.0  # of one chore; well below its lease

BY = "family"  # who answers, and who cancels


def lock_with_parent(run_id: uuid.UUID) -> tuple[Run, datetime]:
    """As Run.objects.lock, for a transaction that may end the run. Raises Missing."""
    parent_id = Run.objects.filter(pk=run_id).values_list("parent_id", flat=True).first()  # it never changes
    parent = None if parent_id is None else lock_parent(parent_id)
    run, now = Run.objects.lock(run_id)
    if parent is not None:
        run.parent = parent
    return run, now


def lock_parent(parent_id: uuid.UUID) -> Run:
    """For the transaction in which its child ends; the child is locked after it."""
    return Run.objects.select_for_update(of=("self",)).get(pk=parent_id)


def ended(run: Run, now: datetime) -> None:
    """In the transaction that ended the run, last; `run.parent` was read under its lock, which came first."""
    if run.parent_id is not None and not run.told:
        _tell_parent(run, now)
    leave_children(run, now)
    hooks.run_ended.send(sender=Run, run=run, now=now)


def leave_children(run: Run, now: datetime) -> None:
    """In the transaction that ended the run, or began to undo what it did: its children are to end as well."""
    if sql.has_children_to_end(run.pk):
        run.cascade_at = now
        Run.objects.filter(pk=run.pk).update(cascade_at=now)
        announce()


def _tell_parent(run: Run, now: datetime) -> None:
    """Once, also if the run is repaired and ends again: what the parent was told, it may have gone on with."""
    parent, run.told = run.parent, run.status
    Run.objects.filter(pk=run.pk).update(told=run.told)
    if run.fan_out_id is not None:
        answered = _count(run, parent, now)
    else:
        answered = answer(LedgerEntry.objects.filter(child=run), end_of(run), now)
    if answered:
        wake(parent, now)


def _count(run: Run, parent: Run, now: datetime) -> int:
    """One more of many has ended; only the last one answers the entry."""
    fan_out = FanOut.objects.get(pk=run.fan_out_id)
    fan_out.count(run)
    if run.detached or not (parent.ended or parent.ending):
        fan_out.release(now)
    fan_out.save()
    if fan_out.ended < fan_out.total:
        return 0
    return answer(LedgerEntry.objects.filter(pk=fan_out.entry_id), fan_out.counts, now)


def end_of(child: Run) -> dict[str, str]:
    """What its parent was told. The final state is not in it: it stands in the child's own rows, under its head."""
    return {
        "run": str(child.pk),
        "status": child.told,
        "error_kind": child.error_kind,
        "error": child.error if child.told == FAILED else "",
        "head": child.head,
    }


def answer(entries: QuerySet[LedgerEntry], result: Mapping[str, object], now: datetime) -> int:
    """Give those that are open their one answer, under the lock of their run; how many they were."""
    still_open = entries.filter(kind=CHILD, status=OPEN)
    answered = {"answered_at": now, "answered_by": BY, "effective_at": now}
    return still_open.update(status=DONE, result=codec.dumps(result), **answered)


# -- what a run leaves behind


def _left_behind(run: Run) -> RunQuerySet:
    """The children that end with it, and still live; without those that end already once what they did is undone."""
    return Run.objects.filter(parent=run, detached=False, status__in=LIVE, ending="")


def cancel_children(run_id: uuid.UUID, most: int | None = None) -> None:
    """Cancel what an ended run left behind: a bounded number of them, or all that the time allows.

    A child that has children of its own leaves them to its own turn of the chore. Where the run undoes what it did, so
    does the child.
    """
    began, done = time.monotonic(), 0
    while (most is None or done < most) and time.monotonic() - began < LONGEST_SECONDS:
        boundary("cascade")
        cancelled = durably(lambda: _cancel_some(run_id))
        boundary("cascaded")
        if not cancelled:
            return
        done += cancelled
    durably(lambda: Run.objects.filter(pk=run_id, cascade_at__isnull=False).update(cascade_at=clock.now()))


def _cancel_some(run_id: uuid.UUID) -> int:
    from runs.engine import compensating
    from runs.engine.closing import close_step
    from runs.engine.transition import move

    with transaction.atomic():
        run, now = Run.objects.lock(run_id)
        undone = compensating.has_begun(run)
        over = run.ended or run.ending
        some = (
            list(_left_behind(run).select_for_update(of=("self",)).order_by("id")[:AT_A_TIME]) if over else []
        )
        for child in some:
            child.parent = run
            reason = f"Its parent, run {run.short_id}, is {run.ending or run.status}."
            if undone and compensating.is_needed(child.pk):
                compensating.begin(child, now, CANCELLED, actor=BY, reason=reason)
                continue
            lines = close_step(child, "cancelled", now, ended=True)
            move(
                child,
                "cancel",
                now,
                actor=BY,
                reason=reason,
                lines=lines.values(),
                status=CANCELLED,
                ending="",
                wake_at=None,
                leased_by=None,
                fence=child.fence + 1,
                finished_at=now,
            )
            ended(child, now)
        if len(some) < AT_A_TIME:
            Run.objects.filter(pk=run_id).update(cascade_at=None)
    return len(some) if len(some) == AT_A_TIME else 0


def register() -> None:
    """The chore that finishes what ends have begun."""
    waiting = lambda: Run.objects.filter(cascade_at__isnull=False)  # noqa: E731
    chores.also(chores.Chore("cascades", waiting, "cascade_at", cancel_children))
