"""A run comes to another version of its graph: worked out by the author's functions, then committed at once.

The worker does it first thing after the claim of a run whose version is not served; an operator may do it before.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from datetime import datetime
from typing import Any  # column values

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core import migration
from runs.core.commands import carry_out, do_at_once
from runs.core.effects import find_out_without_tool
from runs.core.errors import Transient
from runs.core.executor import evidence
from runs.core.graph import Graph, Node
from runs.core.ledger import EFFECT, IN_DOUBT, OPEN, Entry
from runs.core.outcomes import Lost, PutsOff, Stop
from runs.engine import compensating
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.closing import close_step
from runs.engine.durably import FAULTS, durably, durably_or_lost
from runs.engine.lease import Lease
from runs.engine.ledger import RowLedger
from runs.engine.reclaim import lines_of_step
from runs.engine.starting import remember
from runs.engine.state import Change, StoredState
from runs.engine.transition import move
from runs.engine.versions import servable, targets
from runs.errors import Conflict, status, told
from runs.models import statuses
from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.run import Run
from runs.secrets import guard

KIND = "migrate"
KEY = 0  # of a line about an entry
TRIES = 3  # of an operator's migration, while a worker goes on with the run


def node_of_migration(lease: Lease) -> Node:
    """What bounds a migration in time, for it is the author's code: nobody calls it as a node."""
    where = migration.path(lease.graph, lease.version)[0].where
    return Node("its migration", bring_over, (), migration.RETRY, migration.LIMIT, where, is_async=False)


def bring_over(lease: Lease, rows: list[LedgerEntry]) -> list[LedgerEntry]:
    """Migrate a run that this worker holds; returns the entries of the step it then stands in.

    Raises Stop: PutsOff when the author's functions fail, Waits when a person must first say what became of a write,
    Lost. The run never fails by it: it is of a version that this code does not know.
    """
    boundary(KIND)
    try:
        tree, node = migration.migrated(lease.graph, lease.version, lease.state.tree, lease.node)
        change = durably_or_lost(lambda: lease.state.change(tree))
    except BaseException as error:
        if isinstance(error, (Stop, KeyboardInterrupt, asyncio.CancelledError)):
            raise  # of this process or the database, not of the migration
        way = migration.route(lease.graph, lease.version)
        words = f"It cannot be migrated (version {way}): {evidence(error)}"
        decision = migration.RETRY.decide(lease.attempt + 1, Transient(words), random.random())
        raise Stop(PutsOff(decision.delay or 0.0, words)) from error
    stays = node == lease.node
    if not stays:
        ledger = RowLedger(lease, rows)
        for entry in filter(_is_unsettled, list(ledger.entries.values())):
            carry_out(find_out_without_tool(ledger, entry), do_at_once)

    def commit() -> Checkpoint | None:
        with transaction.atomic():
            run, now = Run.objects.lock(lease.run_id)
            if run.fence != lease.fence or run.status != statuses.RUNNING:
                return None
            return _carry(run, lease.graph, node, change, now, actor=lease.worker)

    boundary(f"commit {KIND}")
    checkpoint = durably_or_lost(commit, again=lambda: _already(lease) or commit())
    if checkpoint is None:
        lease.lost.set()
        raise Stop(Lost(f"run {lease.run_id}: another worker or a verb has taken it"))
    boundary(f"committed {KIND}")
    change.accept()
    lease.migrated(checkpoint)
    return rows if stays else []


def migrate(run_id: uuid.UUID, by: str, reason: str) -> Checkpoint:
    """The verb behind Run.migrate; `reason` is checked. Raises Conflict saying what stands against it."""
    for _again in range(TRIES):
        run = Run.objects.get(pk=run_id)
        if run.status not in statuses.LIVE:
            said = _("Run %(run)s is %(status)s; only a live run can be migrated.")
            raise Conflict(told(said, run=run.short_id, status=status(run.status)))
        compensating.refuse_repair(run, _("migrated"))
        graph = _target(run)
        change, node = _worked_out(run, graph)
        if (checkpoint := _unheld(run, graph, node, change, by, reason)) is not None:
            return checkpoint
    said = _("Run %(run)s goes on too fast to be migrated now; try again when it waits.")
    raise Conflict(told(said, run=run.short_id))


def _target(run: Run) -> Graph:
    """The newest graph here that has a migration from the run's version, and is served."""
    served, refused = servable(registry.served())
    graph = targets(served).get((run.graph, run.version))
    if graph is None:
        why = "; ".join(f"{name}: {words}" for name, words in refused.items() if name.startswith(run.graph))
        more = f" ({why})" if why else ""
        said = _("Nothing here migrates %(graph)s from version %(version)s%(more)s.")
        raise Conflict(told(said, graph=repr(run.graph), version=run.version, more=more))
    return graph


def _worked_out(run: Run, graph: Graph) -> tuple[Change, str]:
    state = StoredState.load(run.pk, run.seq, live=True)
    try:
        tree, node = migration.migrated(graph, run.version, state.tree, run.node)
        return durably(lambda: state.change(tree)), node
    except FAULTS:
        raise
    except Exception as error:
        way = migration.route(graph, run.version)
        words = guard().redact(evidence(error))
        said = _("Run %(run)s cannot be migrated (version %(way)s): %(error)s")
        raise Conflict(told(said, run=run.short_id, way=way, error=words)) from error


def _unheld(seen: Run, graph: Graph, node: str, change: Change, by: str, reason: str) -> Checkpoint | None:
    """Take it from whoever drives it, and let the next claim go on. None if it has moved on since it was seen."""
    with transaction.atomic():
        run, now = Run.objects.lock(seen.pk)
        if run.seq != seen.seq:
            return None
        entries = LedgerEntry.objects.filter(run=run, step=run.step + 1, kind=EFFECT, write=True)
        unsettled = [entry.key for entry in entries if _is_unsettled(entry)]
        if unsettled and node != run.node:
            said = _(
                "Run %(run)s would leave %(node)s, and what became of %(keys)s is not known; that must be settled "
                "first."
            )
            raise Conflict(told(said, run=run.short_id, node=repr(run.node), keys=", ".join(unsettled)))
        free = {"status": statuses.RUNNING, "leased_by": None, "alone": False, "wake_at": now}
        checkpoint = _carry(run, graph, node, change, now, actor=by, reason=reason, **free)
        announce()
    return checkpoint


def _carry(
    run: Run,
    graph: Graph,
    node: str,
    change: Change,
    now: datetime,
    *,
    actor: str,
    reason: str = "",
    **changes: Any,
) -> Checkpoint:
    """The commit, under the Run lock. A run that leaves its node leaves its step, and what is open in it is closed."""
    remember(graph, now)
    closed, step = {}, run.step
    if node != run.node:
        closed, step = close_step(run, "superseded", now, ended=False), run.step + 1
    lines = {line[KEY]: line for line in lines_of_step(run)} | closed
    way = f"version {migration.route(graph, run.version)}"
    return move(
        run,
        KIND,
        now,
        actor=actor,
        reason=f"{reason} ({way})" if reason else way,
        body=change.text,
        snapshot=change.snapshot,
        lines=lines.values(),
        version=graph.version,
        node=node,
        step=step,
        attempt=0,
        queue=graph.queue,
        fence=run.fence + 1,
        **changes,
    )


def _is_unsettled(entry: Entry | LedgerEntry) -> bool:
    """A write that may have been sent, and nobody has said whether it happened."""
    if entry.kind != EFFECT or not entry.write:
        return False
    return entry.status == IN_DOUBT or entry.status == OPEN and entry.tried_at is not None


def _already(lease: Lease) -> Checkpoint | None:
    """After a fault: the checkpoint that an earlier try of this very migration has committed."""
    there = Checkpoint.objects.filter(run_id=lease.run_id, seq=lease.seq + 1, kind=KIND)
    return there.filter(fence=lease.fence + 1, actor=lease.worker).first()
