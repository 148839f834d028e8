"""What the end of a run means to its family: word is left for its parent, and its children are to end too.

Lock order: ancestors before descendants. So a run's parent is told after its end (telling.py), and its children are
cancelled later, in transactions of their own, by whoever does chores.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta

from django.db import connection, transaction

from runs import chores, hooks
from runs.engine import clock
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.portion import Portion
from runs.engine.telling import BY, leave_word, tell
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run, RunQuerySet
from runs.models.statuses import CANCELLED, LIVE

AT_A_TIME = 25  # children at most, cancelled in one transaction
LEASE = timedelta(
    seconds=15
)  # short: nobody repairs the run while what a killed process left of this is waited for
LONGEST_SECONDS = 5.0  # of one chore; well below its lease
LEFT_BEHIND = (
    "SELECT EXISTS (SELECT 1 FROM runs_run WHERE parent_id = %s AND NOT detached AND ending = ''"
    " AND status IN ('created', 'running', 'waiting', 'retrying'))"
)


def ended(run: Run, now: datetime) -> None:
    """In the transaction that ended the run, last."""
    if run.parent_id is not None and not run.told:
        leave_word(run, now)
    leave_children(run, now)
    hooks.run_ended.send(sender=Run, run=run, now=now)


def leave_children(run: Run, now: datetime) -> None:
    """In the transaction that ended the run, or began to undo what it did: its children are to end as well."""
    if has_children_to_end(run.pk):
        run.cascade_at = now
        Run.objects.filter(pk=run.pk).update(cascade_at=now)
        announce()


# -- what a run leaves behind


def _left_behind(run: Run) -> RunQuerySet:
    """The children that end with it, and still live; without those that end already once what they did is undone."""
    return Run.objects.filter(parent=run, detached=False, status__in=LIVE, ending="")


def has_children_to_end(run_id: uuid.UUID) -> bool:
    """Whether there are such. Asked at each end, also of runs that never had one, so without what the ORM takes."""
    with connection.cursor() as cursor:
        cursor.execute(LEFT_BEHIND, [run_id if connection.vendor == "postgresql" else run_id.hex])
        return bool(cursor.fetchone()[0])


def cancel_children(run_id: uuid.UUID, most: int | None = None) -> None:
    """Cancel what an ended run left behind: a bounded number of them, or all that the time allows.

    A child that has children of its own leaves them to its own turn of the chore. Where the run undoes what it did, so
    does the child.
    """
    began, done, portion = time.monotonic(), 0, Portion(AT_A_TIME)
    while (most is None or done < most) and time.monotonic() - began < LONGEST_SECONDS:
        boundary("cascade")
        cancelled = durably(lambda: _cancel_some(run_id, portion))
        portion.end()
        boundary("cascaded")
        if not cancelled:
            tell(run_id)  # if the answer to a commit was lost, nobody has
            return
        done += cancelled
    durably(lambda: Run.objects.filter(pk=run_id, cascade_at__isnull=False).update(cascade_at=clock.now()))


def _cancel_some(run_id: uuid.UUID, portion: Portion) -> int:
    from runs.engine import compensating

    with transaction.atomic():
        run, now = Run.objects.lock(run_id)
        most = portion.begin()
        undone = compensating.has_begun(run)
        over = run.ended or run.ending
        some = list(_left_behind(run).select_for_update(of=("self",)).order_by("id")[:most]) if over else []
        for child in some:
            reason = f"Its parent, run {run.short_id}, is {run.ending or run.status}."
            if undone and compensating.is_needed(child.pk):
                compensating.begin(child, now, CANCELLED, actor=BY, reason=reason)
                continue
            cancel_now(child, now, actor=BY, reason=reason)
        if len(some) < most:
            Run.objects.filter(pk=run_id).update(cascade_at=None)
    return len(some) if len(some) == most else 0


def cancel_now(run: Run, now: datetime, *, actor: str, reason: str) -> Checkpoint:
    """A locked run ends here, and nothing that it did is undone."""
    from runs.engine.closing import close_step
    from runs.engine.transition import move

    lines = close_step(run, "cancelled", now, ended=True)
    checkpoint = move(
        run,
        "cancel",
        now,
        actor=actor,
        reason=reason,
        lines=lines.values(),
        status=CANCELLED,
        ending="",
        wake_at=None,
        leased_by=None,
        fence=run.fence + 1,
        finished_at=now,
    )
    ended(run, now)
    return checkpoint


def register() -> None:
    """The chore that finishes what ends have begun."""
    waiting = lambda: Run.objects.filter(cascade_at__isnull=False)  # noqa: E731
    chores.also(chores.Chore("cascades", waiting, "cascade_at", cancel_children, LEASE))
