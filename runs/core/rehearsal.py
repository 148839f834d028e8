"""Run a graph in memory, in a REPL or a test of its logic: the same executor, a ledger that forgets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any  # inputs and states are the author's

from runs.core.child import ChildEnd
from runs.core.codec_loose import restore_loosely
from runs.core.commands import carry_out, carry_out_async, do_at_once, do_at_once_async
from runs.core.compensating import KEPT, compensate_one
from runs.core.context import AsyncRun, Run
from runs.core.executor import conclude, excuse, left_open
from runs.core.graph import END, Graph
from runs.core.ledger import CHILD, EFFECT, OPEN, SIGNAL, TIMER
from runs.core.memory_ledger import MemoryLedger
from runs.core.outcomes import Fails, Outcome, PutsOff, Stepped, Stop, Waits
from runs.core.questions import Questions
from runs.core.reach import near, tool_of, tools_among
from runs.core.tool import Tool


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
    """From the first node to the end, a failure, or a wait that `answers` does not answer.

    What a failed run did is undone, if its graph wants that.
    """
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
                    _failed(run, "loop_limit", f"{len(run.path)} steps, the last one {run.node!r}")
                    return run
                run.node = next_node
            case Waits(keys):
                if not _ends_children(run) and not run.ledger.settle() and not _pass_time(run.ledger, keys):
                    run.status, run.waits_for = "waiting", keys
                    return run
                attempt = 1
            case PutsOff():
                attempt += outcome.counts
                run.ledger.clock += timedelta(seconds=outcome.delay)
            case Fails(kind, error):
                _failed(run, kind, error)
                return run


def _execute(run: Rehearsal, state: Any, attempt: int) -> tuple[Outcome, Questions]:
    node = run.graph.nodes[run.node]
    questions = Questions(run.ledger)
    try:
        if node.is_async:
            returned = asyncio.run(node.fn(AsyncRun(questions, do_at_once_async), state))
        else:
            returned = node.fn(Run(questions, do_at_once), state)
        if (work := left_open(questions)) is not None:
            carry_out(work, do_at_once)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return excuse(node, questions, attempt, error, run.ledger.chance()), questions
    return conclude(run.graph, node, questions, state, returned), questions


def _ends_children(run: Rehearsal) -> bool:
    """Rehearse what open entries have started, with the same answers; whether one of them has come to its end."""
    ledger, moved = run.ledger, False
    for entry in [entry for entry in ledger.entries.values() if entry.kind == CHILD and entry.status == OPEN]:
        for child in ledger.children[entry.key]:
            if child.end is None:
                begins = child.graph.restore(child.tree)
                went = rehearse(child.graph, begins, ledger.answers, run_id=child.id, graphs=ledger.graphs)
                if went.status == "waiting":
                    continue
                state = restore_loosely(went.graph.flatten(went.state))
                came_to = {"reached": state, "spent": went.ledger.spent}
                if went.status == "completed":
                    came_to = {"result": state}
                how = {"error_kind": went.error_kind, "error": went.error}
                child.end = ChildEnd(child.id, went.status, **how, **came_to)
                ledger.spent += went.ledger.spent
                moved = True
        ledger.look([entry.key])
    return moved


def _pass_time(ledger: MemoryLedger, keys: tuple[str, ...]) -> bool:
    """Move the clock on to where one of them ends by itself: a timer, a timeout, the quarantine of an earlier call."""
    awaited = [ledger.entries[key] for key in keys]
    ending = [e.due_at for e in awaited if e.kind in (EFFECT, SIGNAL, TIMER) and e.status == OPEN]
    later = [moment for moment in ending if moment is not None and moment > ledger.clock]
    if not later:
        return False
    ledger.clock = min(later)
    return True


def _failed(run: Rehearsal, kind: str, error: str) -> None:
    run.status, run.error_kind, run.error = "failed", kind, error
    if run.graph.on_failure != "compensate" or kind in KEPT:
        return
    tools = tools_among(near(run.graph))
    left = True
    while left:
        try:
            left = _compensate(run, tools)
        except Stop as stop:
            match stop.outcome:
                case Waits(keys):
                    if not run.ledger.settle() and not _pass_time(run.ledger, keys):
                        run.status, run.waits_for = "waiting", keys
                        return
                case PutsOff(delay):
                    run.ledger.clock += timedelta(seconds=delay)


def _compensate(run: Rehearsal, tools: list[Tool]) -> bool:
    work = compensate_one(run.ledger, lambda entry: tool_of(entry, tools))
    if run.graph.is_async:
        return asyncio.run(carry_out_async(work, do_at_once_async))
    return carry_out(work, do_at_once)
