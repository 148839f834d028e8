"""One execution of one node, from what it returned or raised to one outcome of a closed set."""

from __future__ import annotations

import traceback
from typing import Any  # what a node returns is checked here

from pydantic import ValidationError

from runs.core.commands import Work
from runs.core.errors import (
    Diverged,
    DurableError,
    EffectFailed,
    Expired,
    Permanent,
    Rejected,
    SecretFound,
    Transient,
)
from runs.core.graph import END, Graph, Node
from runs.core.mapping import classify
from runs.core.outcomes import Fails, Outcome, PutsOff, Stepped, Stop
from runs.core.questions import Questions
from runs.core.tool import explain

FRAMES = 8


def left_open(questions: Questions) -> Work | None:
    """The node came back: what finds out first how its unfinished writes ended, in place of the node, which may cancel
    or swallow them each time. None if there are none, or if the run goes no further anyhow."""
    questions.over = True
    if not questions.ledger.entries or questions.stopped is not None or questions.under_way:
        return None
    return questions.find_out() if questions.unfinished() else None


def conclude(graph: Graph, node: Node, questions: Questions, state: Any, returned: Any) -> Outcome:
    """The node came back, and what it left open is found out: where the run goes, unless it may not leave this step."""
    questions.over = True
    if questions.stopped is not None:
        return questions.stopped.outcome  # the node swallowed it: what it did since then does not count
    if many := len(questions.under_way):
        said = f"returned while {many} of the questions that it had asked were under way; await or cancel them all"
        return Fails("permanent", f"{node.where}: {said}")
    if questions.ledger.entries and (kept := _may_not_leave(questions)) is not None:
        return kept
    try:
        target, after = _read(graph, node, state, returned)
    except Permanent as error:
        return Fails("permanent", str(error))
    if target != END and target not in node.then or target == END and END not in node.then:
        return Fails("permanent", f"{node.where}: returned {_shown(target)}; then allows {_allowed(node)}")
    return Stepped(target, after)


def _may_not_leave(questions: Questions) -> Outcome | None:
    for entry in [*questions.unfinished(), *questions.forgotten()]:
        if entry.key not in questions.asked:
            error = Diverged(
                "the end of the step", f"{entry.key} {entry.request}", "ask for it again, with its key"
            )
            return Fails("diverged", str(error))
    return None


def excuse(node: Node, questions: Questions, attempt: int, error: BaseException, chance: float) -> Outcome:
    """The node raised: retry by its policy, or fail with the evidence. `attempt` counts from 1."""
    questions.over = True
    outcome = _excused(node, questions, attempt, error, chance)
    if isinstance(outcome, Fails) and questions.stood:
        first, _, places = outcome.error.partition("\n")
        advice = (
            f"({', '.join(questions.stood)} stays failed, since something was done after that: move the run to have "
            "it asked anew.)"
        )
        return Fails(outcome.kind, "\n".join(filter(None, (first, advice, places))))
    return outcome


def _excused(node: Node, questions: Questions, attempt: int, error: BaseException, chance: float) -> Outcome:
    if isinstance(error, Stop):
        return error.outcome
    if questions.stopped is not None:
        return questions.stopped.outcome
    words = evidence(error)
    match error:
        case Rejected():
            return Fails("rejected", f"Rejected by {error.by}: {error.reason}")
        case Expired():
            return Fails("expired", str(error))
        case EffectFailed():
            return Fails(error.error_kind or "permanent", words)
        case Permanent() | SecretFound():
            return Fails("permanent", words)
        case DurableError(error_kind="bad_state"):
            return Fails("bad_state", words)
    known = classify(error) if isinstance(error, Exception) else error
    decision = node.retry.decide(attempt, known, chance)
    if not decision.again:
        final = isinstance(known, Permanent) or decision.reason.endswith("is not retried")
        return Fails("permanent" if final else "exhausted", words)
    return PutsOff(decision.delay, words)


def evidence(error: BaseException) -> str:
    """Type, message and the last frames by file and line; never the values of variables."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    try:
        message = explain(error) if isinstance(error, ValidationError) else str(error)
    except Exception as broken:
        message = f"(its text cannot be made: {type(broken).__name__})"
    return "\n".join([f"{type(error).__name__}: {message}", *places])


def timed_out(node: Node) -> Transient:
    return Transient(f"node {node.name} was not done after {node.limit.total_seconds():g} s, its time limit")


def _read(graph: Graph, node: Node, state: Any, returned: Any) -> tuple[str, Any]:
    """A node returns the next node, the state, (next, state), or nothing where only one node may follow."""
    after, target = state, None
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], str):
        target, after = returned
    elif isinstance(returned, str):
        target = returned
    elif returned is not None:
        after = returned
    kind = dict if graph.state is None else graph.state
    if not isinstance(after, kind):
        raise Permanent(
            f"{node.where}: returned {type(after).__name__}; expected a node's name or {kind.__name__}"
        )
    if target is None:
        if len(node.then) > 1:
            raise Permanent(f"{node.where}: must return the next node; then allows {_allowed(node)}")
        target = node.then[0]
    return target, after


def _allowed(node: Node) -> str:
    return ", ".join(_shown(name) for name in node.then)


def _shown(name: str) -> str:
    return "END" if name == END else repr(name)
