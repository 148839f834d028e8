"""`Run.retry`, `Run.skip` and `Run.move`: a failed or cancelled run goes on, from where an operator says.

Three ways of one act. What the run did stays: its checkpoints, its entries and the decisions on them. What stopped its
step is put aside (runs/core/repair.py), so that the next execution asks it anew under a key of its own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # states are the author's

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core import codec
from runs.core.errors import CodecError, DurableError
from runs.core.graph import END, Graph
from runs.engine import clock, family, holding
from runs.engine.announce import announce
from runs.engine.durably import FAULTS, durably
from runs.engine.mending import bring_back, entries_of_step
from runs.engine.repairable import refuse_ended_otherwise, refuse_unfinished
from runs.engine.state import StoredState
from runs.engine.telling import tell
from runs.engine.transition import move
from runs.errors import Conflict, Invalid, told
from runs.models import statuses
from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.repairs import UNCHANGED
from runs.models.run import Run
from runs.secrets import guard, refuse_in
from runs.unstorable import fault

RETRY, SKIP, MOVE = "retry", "skip", "move"
TRIES = 3  # while others settle what the run has left


@dataclass(frozen=True, slots=True)
class Repair:
    """What an operator asks for. `to`: the node at which the run goes on, or END; None where the way says it."""

    way: str
    by: str
    reason: str
    state: Any = UNCHANGED
    to: str | None = None

    @property
    def words(self) -> str:
        """What is done, and then the reason: nobody's words can pass for the engine's."""
        place = "" if self.to is None else f" to {'END' if self.to == END else self.to}"
        other = "" if self.state is UNCHANGED else ", with another state"
        return f"{self.way.capitalize()}{place}{other}: {self.reason}"


def repaired(run_id: uuid.UUID, wanted: Repair) -> Checkpoint:
    """The verb; its docstrings are at Run.retry, Run.skip and Run.move. The reason is checked."""
    for _try in range(TRIES):
        run = Run.objects.get(pk=run_id)
        refuse_ended_otherwise(run)
        if run.parent_id is not None:
            tell(run.parent_id)  # of the end that is repaired, before it is repaired
        graph = _graph_of(run, wanted)
        plan = _Plan(wanted, _target(run, graph, wanted), *_body(run, graph, wanted))
        if (checkpoint := _begin(run, plan)) is not None:
            return checkpoint
    raise Conflict(told(_("Run %(run)s has moved on; look at it again."), run=run.short_id))


@dataclass(frozen=True, slots=True)
class _Plan:
    """`target`: where the run goes on, None in the step where it stands."""

    wanted: Repair
    target: str | None
    body: str
    snapshot: bool


# -- where, and with what


def _graph_of(run: Run, wanted: Repair) -> Graph | None:
    """The graph in this code; None where a worker will find it, or migrate the run before anything else.

    Raises Conflict where nobody could go on with it, or this code is needed to say where and with what.
    """
    graph = registry.find(run.graph, run.version)
    if graph is not None and (run.graph, run.version) not in holding.changed_shapes():
        return graph
    pair = (run.graph, run.version)
    if (held := holding.held([pair], clock.now()).get(pair)) is not None:
        raise Conflict(
            told(
                _("Run %(run)s cannot go on: it %(needs)s; %(why)s."),
                run=run.short_id,
                needs=_(held.needs),
                why=held.why,
            )
        )
    if wanted.way != RETRY or wanted.state is not UNCHANGED:
        raise Conflict(
            told(
                _(
                    "Run %(run)s is of version %(version)s, which this code does not have: it can only be retried "
                    "as it is."
                ),
                run=run.short_id,
                version=run.version,
            )
        )
    return None


def _target(run: Run, graph: Graph | None, wanted: Repair) -> str | None:
    if wanted.way == RETRY or graph is None:
        return None
    if wanted.way == MOVE:
        if not isinstance(wanted.to, str) or wanted.to not in graph.nodes:
            raise _no_such_node(wanted.to, list(graph.nodes))
        return wanted.to
    node = graph.nodes.get(run.node)
    if node is None:
        raise Conflict(
            told(
                _("Graph %(graph)s has no node %(node)s to skip; move the run."),
                graph=run.graph,
                node=run.node,
            )
        )
    if wanted.to is None and len(node.then) > 1:
        said = told(
            _("Several nodes may follow %(node)s: name one of %(nodes)s."),
            node=run.node,
            nodes=_names(node.then),
        )
        raise Invalid(said, {"to": [said]})
    target = node.then[0] if wanted.to is None else wanted.to
    if target not in node.then:
        raise _no_such_node(target, list(node.then))
    return target


def _no_such_node(given: str | None, known: list[str]) -> Invalid:
    said = told(_("%(node)s: choose one of %(nodes)s."), node=repr(given), nodes=_names(known))
    return Invalid(said, {"to": [said]})


def _names(nodes: list[str] | tuple[str, ...]) -> str:
    return ", ".join("END" if name == END else name for name in nodes)


def _body(run: Run, graph: Graph | None, wanted: Repair) -> tuple[str, bool]:
    """What the checkpoint keeps of a given state: (its text, whether it is a snapshot). Raises Invalid."""
    if graph is None or wanted.state is UNCHANGED:
        return "", False
    try:
        stored = StoredState.load(run.pk, run.seq)
    except FAULTS:
        raise
    except DurableError:  # what cannot be read is what is repaired
        stored = None
    try:
        tree = graph.flatten(graph.begin(wanted.state), None if stored is None else stored.tree)
        if guard().find(codec.encode(tree)):
            refuse_in(tree)
        graph.restore(tree)
        if stored is None:
            return durably(lambda: StoredState(run.pk).begin(tree)), True
        change = durably(lambda: stored.change(tree))
    except CodecError as error:
        raise Invalid(_unfit(run, error), {error.path: [fault(error.reason)]}) from error
    except DurableError as error:
        raise Invalid(_unfit(run, error)) from error
    return change.text, change.snapshot


def _unfit(run: Run, error: DurableError) -> Promise:
    return told(_("The state does not fit graph %(graph)s: %(error)s"), graph=run.graph, error=fault(error))


# -- the commit


def _begin(seen: Run, plan: _Plan) -> Checkpoint | None:
    """None if the run has moved on since it was seen."""
    with transaction.atomic():
        run, now = Run.objects.lock_with_family(seen.pk)
        if run.seq != seen.seq:
            return None
        refuse_ended_otherwise(run)
        entries = entries_of_step(run)
        refuse_unfinished(run, entries)
        checkpoint = _back_to_life(run, plan, entries, now)
        if plan.target == END:
            return _completed(run, plan, now)
        announce()
    return checkpoint


def _back_to_life(run: Run, plan: _Plan, entries: list[LedgerEntry], now: datetime) -> Checkpoint:
    changes: dict[str, Any] = {}
    if plan.target is not None and plan.target != END:
        changes = {"node": plan.target, "step": run.step + 1}
    if run.told == statuses.FAILED and run.error_kind and not run.told_kind:
        changes["told_kind"] = run.error_kind
    wanted = plan.wanted
    return bring_back(
        run,
        entries,
        now,
        actor=wanted.by,
        reason=wanted.words,
        body=plan.body,
        snapshot=plan.snapshot,
        **changes,
    )


def _completed(run: Run, plan: _Plan, now: datetime) -> Checkpoint:
    """Its last node was skipped: nothing is left for a worker to do."""
    checkpoint = move(
        run,
        "complete",
        now,
        actor=plan.wanted.by,
        reason=plan.wanted.words,
        status=statuses.COMPLETED,
        step=run.step + 1,
        wake_at=None,
        finished_at=now,
    )
    family.ended(run, now)
    return checkpoint
