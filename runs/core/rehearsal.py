"""Run a graph in memory, in a REPL or a test of its logic: the same executor, a ledger that forgets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any  # inputs and states are the author's

from runs.core.commands import do_at_once, do_at_once_async
from runs.core.context import AsyncRun, Run
from runs.core.executor import conclude, excuse
from runs.core.graph import END, Graph
from runs.core.ledger import MemoryLedger
from runs.core.outcomes import Fails, Outcome, PutsOff, Stepped, Waits
from runs.core.questions import Questions


@dataclass
class Rehearsal:
    """How far a run came: `status` is completed, waiting or failed; `path` the nodes that committed."""

    graph: Graph
    state: Any
    node: str
    ledger: MemoryLedger
    status: str = "created"
    error_kind: str = ""
    error: str = ""
    path: list[str] = field(default_factory=list)
    waits_for: tuple[str, ...] = ()


def rehearse(graph: Graph, given: Any, answers: dict[str, Any] | None = None, **ledger: Any) -> Rehearsal:
    """From the first node to the end, a failure, or a wait that `answers` does not answer."""
    graph.check()
    tree = graph.flatten(graph.begin(given))
    run = Rehearsal(graph, graph.restore(tree), graph.first, MemoryLedger(answers or {}, **ledger))
    attempt = 1
    while True:
        run.ledger.node = run.node
        outcome, questions = _execute(run, graph.restore(tree), attempt)
        match outcome:
            case Stepped(next_node, state):
                tree, attempt = graph.flatten(state), 1
                run.state = graph.restore(tree)
                run.path.append(run.node)
                run.ledger.leave_step()
                if next_node == END:
                    run.status = "completed"
                    return run
                if len(run.path) >= graph.max_steps:
                    return _failed(run, "loop_limit", f"{len(run.path)} steps, the last one {run.node!r}")
                run.node = next_node
            case Waits(keys):
                if not run.ledger.settle() and not _pass_quarantine(run.ledger, keys):
                    run.status, run.waits_for = "waiting", keys
                    return run
                attempt = 1
            case PutsOff():
                attempt += outcome.counts
                run.ledger.clock += timedelta(seconds=outcome.delay)
            case Fails(kind, error):
                return _failed(run, kind, error)


def _execute(run: Rehearsal, state: Any, attempt: int) -> tuple[Outcome, Questions]:
    node = run.graph.nodes[run.node]
    questions = Questions(run.ledger)
    try:
        if node.is_async:
            returned = asyncio.run(node.fn(AsyncRun(questions, do_at_once_async), state))
        else:
            returned = node.fn(Run(questions, do_at_once), state)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return excuse(node, questions, attempt, error, run.ledger.chance()), questions
    return conclude(run.graph, node, questions, state, returned), questions


def _pass_quarantine(ledger: MemoryLedger, keys: tuple[str, ...]) -> bool:
    """Move the clock past the time in which an earlier call may be under way."""
    moments = [ledger.entries[key].due_at for key in keys if ledger.entries[key].kind == "effect"]
    if not moments or any(moment is None or moment <= ledger.clock for moment in moments):
        return False
    ledger.clock = max(moment for moment in moments if moment is not None)
    return True


def _failed(run: Rehearsal, kind: str, error: str) -> Rehearsal:
    run.status, run.error_kind, run.error = "failed", kind, error
    return run
