"""Taking runs from a worker that cannot give them back: its thread is stuck, or it was ended on purpose."""

from __future__ import annotations

import random
from datetime import timedelta

from django.db import transaction

from runs.core import migration
from runs.core.errors import Transient
from runs.core.retry import Retry
from runs.engine import compensating
from runs.engine.closing import close_step, lines_of
from runs.engine.durably import durably
from runs.engine.family import ended
from runs.engine.lease import Lease
from runs.engine.telling import tell
from runs.engine.transition import move
from runs.models import statuses
from runs.models.entry import LedgerEntry
from runs.models.run import Run
from runs.models.worker import Worker


def take_from_stuck(lease: Lease, error: str) -> None:
    """Raise the fence and commit the failed attempt; its open writes are found out by whoever drives it next."""
    decision = _retry_of(lease).decide(lease.attempt + 1, Transient(error), random.random())

    def take() -> None:
        with transaction.atomic():
            run, now = Run.objects.lock(lease.run_id)
            if run.fence != lease.fence or run.status != statuses.RUNNING:
                return
            common = {"actor": lease.worker, "reason": error, "fence": run.fence + 1, "leased_by": None}
            common |= {"lines": lines_of_step(run)}
            common |= {"attempt": run.attempt + 1, "error": error, "deaths": 0, "silent": 0, "alone": False}
            if run.ending:
                del common["error"]  # the one that it ends with stays
            if decision.again:
                wake_at = now + timedelta(seconds=decision.delay)
                move(run, "retry", now, **common, status=statuses.RETRYING, wake_at=wake_at)
                return
            if compensating.called_for(lease.graph, "exhausted", run.pk):
                kept = {"error_kind": "exhausted", "error": error}
                compensating.begin(run, now, statuses.FAILED, lease.worker, error, **kept)
                return
            lines = close_step(run, "cancelled", now, ended=True)
            ending = {
                "status": statuses.FAILED,
                "error_kind": "exhausted",
                "wake_at": None,
                "finished_at": now,
            }
            move(run, "fail", now, **{**common, "lines": lines.values()}, **ending)
            ended(run, now)

    durably(take)
    if lease.parent_id is not None:
        tell(lease.parent_id)


def _retry_of(lease: Lease) -> Retry:
    """The policy for what the worker was doing."""
    if lease.ending:
        return compensating.RETRY
    if lease.version != lease.graph.version:
        return migration.RETRY
    return lease.graph.nodes[lease.node].retry


def hand_back_for(worker: str, reason: str) -> int:
    """After a worker was ended on purpose: hand back what it held. Such an end is no death. How many runs it were."""
    held = list(Run.objects.filter(leased_by=worker, status=statuses.RUNNING).values_list("pk", "fence"))
    for run_id, fence in held:
        durably(lambda run_id=run_id, fence=fence: _hand_back(run_id, fence, worker, reason))
    Worker.objects.filter(pk=worker).delete()
    return len(held)


def hand_back(lease: Lease, reason: str) -> None:
    """One that cannot give itself back."""
    durably(lambda: _hand_back(lease.run_id, lease.fence, lease.worker, reason))


def _hand_back(run_id: object, fence: int, worker: str, reason: str) -> None:
    with transaction.atomic():
        run, now = Run.objects.lock(run_id)
        if run.fence != fence or run.leased_by != worker:
            return
        lines = lines_of_step(run)
        ending = {"fence": fence + 1, "leased_by": None, "alone": False, "wake_at": now}
        move(run, "hand_back", now, actor="supervisor", reason=reason, lines=lines, **ending)


def lines_of_step(run: Run) -> list[list[object]]:
    """Every entry of the step in progress: what the worker opened since its last checkpoint is covered by this one."""
    return lines_of(LedgerEntry.objects.filter(run=run, step=run.step + 1).order_by("id"))
