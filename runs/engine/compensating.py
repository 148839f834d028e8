"""A run that ends by undoing what it did: how that begins, what one drive of it does, and what it rules out."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any  # column values

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core.compensating import KEPT, compensate_one
from runs.core.errors import Transient
from runs.core.executor import evidence
from runs.core.graph import Graph, Node
from runs.core.ledger import Entry
from runs.core.outcomes import Outcome, PutsOff, Stop
from runs.core.reach import tool_of
from runs.core.retry import Retry
from runs.core.tool import Tool
from runs.engine.announce import announce
from runs.engine.closing import close_step
from runs.engine.family import has_children_to_end, leave_children
from runs.engine.lease import Lease
from runs.engine.transition import given_to_workers, move
from runs.errors import Conflict, told
from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.run import Run

KIND = "compensate"
LIMIT = timedelta(minutes=15)  # of one compensation with all its tries in place, beside the tool's own limit
RETRY = Retry(
    attempts=sys.maxsize, first=10.0, cap=600.0
)  # of what no tool's policy is for; it never gives up


def called_for(graph: Graph, error_kind: str, run_id: Any) -> bool:
    """Whether a run that fails in this way first undoes what it did."""
    if graph.on_failure != "compensate" or error_kind in KEPT:
        return False
    return is_needed(run_id)


def is_needed(run_id: Any) -> bool:
    """Whether it did something that can be undone, or has children that end with it, and may have done so."""
    return LedgerEntry.objects.filter(run_id=run_id).compensable().exists() or has_children_to_end(run_id)


def has_begun(run: Run) -> bool:
    """Whether the run undoes what it did, or has done so."""
    return bool(run.ending) or Checkpoint.objects.filter(run=run, kind=KIND).exists()


def begin(run: Run, now: datetime, ending: str, actor: str, reason: str, **changes: Any) -> Checkpoint:
    """Under the Run lock: from here on no node is called. The run is due at once, and ends as `ending` afterwards."""
    lines = close_step(run, "cancelled", now, ended=True, keep_sent=True)
    checkpoint = move(
        run,
        KIND,
        now,
        actor=actor,
        reason=reason,
        lines=lines.values(),
        ending=ending,
        **given_to_workers(run, now),
        **changes,
    )
    leave_children(run, now)
    announce()
    return checkpoint


def refuse_repair(run: Run, verb: str | Promise) -> None:
    """The rule for whatever would let a run go on from where it stands. Raises Conflict once a compensation has begun.

    Some of what its steps did is undone then, so no step may build on it; a fork begins with keys of its own.
    """
    if run.ending:
        raise Conflict(
            told(_("Run %(run)s is undoing what it did; it cannot be %(verb)s."), run=run.short_id, verb=verb)
        )
    if LedgerEntry.objects.filter(run=run, compensates__isnull=False).exists():
        raise Conflict(
            told(
                _("What run %(run)s did was undone; it cannot be %(verb)s any more."),
                run=run.short_id,
                verb=verb,
            )
        )


class Compensating:
    """One drive's part of it. `limit` bounds what is under way now, as a node's does."""

    def __init__(self, lease: Lease, ledger: Any) -> None:
        self.lease, self.ledger = lease, ledger
        self.tools = registry.tools_of(lease.graph)
        self.node = self._bounded(timedelta())

    def next(self) -> Any:
        """The work of undoing one write."""
        return compensate_one(self.ledger, self._tool_of)

    def excused(self, error: BaseException) -> Outcome:
        """Whatever goes wrong beside a tool's own errors is tried again later; a person can cancel it."""
        if isinstance(error, Stop):
            return error.outcome
        words = f"It cannot be compensated: {evidence(error)}"
        decision = RETRY.decide(self.lease.attempt + 1, Transient(words), random.random())
        return PutsOff(decision.delay or 0.0, words)

    def _tool_of(self, entry: Entry) -> Tool | None:
        made = tool_of(entry, self.tools)
        if made is not None and made.compensate is not None:
            self.node = self._bounded(made.compensate.limit)
        return made

    def _bounded(self, limit: timedelta) -> Node:
        """What the shift looks at to see whether the thread is stuck."""
        act: Callable[..., Any] = self.next
        return Node("its compensation", act, (), RETRY, LIMIT + limit, KIND, is_async=False)
