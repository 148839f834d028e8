"""What undoes a write: how it is declared, in which order it is done, and what people are asked."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from runs.core import codec
from runs.core.ask import Found
from runs.core.commands import carry_out, do_at_once
from runs.core.compensating import compensate_one
from runs.core.context import Run
from runs.core.errors import Ambiguous, GraphError, Permanent, Transient
from runs.core.graph import Graph
from runs.core.memory_ledger import MemoryLedger
from runs.core.outcomes import PutsOff, Stop, Waits
from runs.core.questions import Questions
from runs.core.rehearsal import rehearse
from runs.core.retry import Retry
from runs.core.tool import Tool, tool

undone: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_undone():
    undone.clear()


def give_back(arguments: dict[str, Any], result: str, idempotency_key: str) -> str:
    undone.append((arguments, result, idempotency_key.partition(":")[2]))
    return "given back"


@tool(kind="write", compensate=give_back)
def take(what: str, price: Decimal = Decimal("1.10")) -> str:
    return f"took {what}"


def after(*calls: tuple[Tool, dict[str, Any]], **options: Any) -> MemoryLedger:
    """A ledger in which each of these calls is done, each in a step of its own."""
    ledger = MemoryLedger(operators=["ops"], **options)
    for made, arguments in calls:
        Run(Questions(ledger), do_at_once).call(made, **arguments)
        ledger.leave_step()
    return ledger


def compensate(ledger: MemoryLedger, *tools: Tool) -> bool:
    """One round; False when nothing is left."""
    known = {made.name: made for made in tools}
    return carry_out(compensate_one(ledger, lambda entry: known.get(entry.name)), do_at_once)


def stopped(ledger: MemoryLedger, *tools: Tool) -> Any:
    with pytest.raises(Stop) as caught:
        compensate(ledger, *tools)
    return caught.value.outcome


def settle(ledger: MemoryLedger, outcome: str) -> None:
    """People answer the one open question."""
    [key] = [key for key, entry in ledger.entries.items() if key.endswith("!") and entry.status == "open"]
    ledger.answers = {key: {"verdict": "respond", "payload": {"outcome": outcome, "result": None}}}
    assert ledger.settle()


def test_the_latest_is_undone_first_with_what_it_was_given_and_what_it_returned():
    ledger = after((take, {"what": "a"}), (take, {"what": "b", "price": "2.50"}))
    assert compensate(ledger, take) and compensate(ledger, take)
    assert not compensate(ledger, take)
    first, second = undone
    assert first[:2] == ({"what": "b", "price": Decimal("2.50")}, "took b"), "typed as the tool took them"
    assert second[:2] == ({"what": "a", "price": Decimal("1.10")}, "took a")
    assert [key.split(":")[:2] for *_, key in undone] == [["compensate", "2"], ["compensate", "1"]]
    assert [entry.status for entry in ledger.past.values()] == ["compensated", "compensated"]


def test_what_has_no_compensation_and_what_only_read_stay_as_they_are():
    @tool(kind="write")
    def shout(what: str) -> str:
        return what

    @tool
    def look(what: str) -> str:
        return what

    ledger = after((shout, {"what": "a"}), (look, {"what": "b"}))
    assert not compensate(ledger, shout, look)


def test_it_takes_what_it_names():
    made = tool(kind="write", compensate=lambda result: undone.append(result))(lambda what: f"took {what}")
    ledger = after((made, {"what": "a"}))
    assert compensate(ledger, made)
    assert undone == ["took a"]


def test_a_tool_can_undo_with_a_policy_of_its_own():
    @tool(kind="write", retry=Retry(attempts=4, first=60), honours_key=True)
    def refund(result: str, idempotency_key: str) -> None:
        undone.append(idempotency_key)
        if len(undone) < 3:
            raise Transient("closed")

    charge = tool(kind="write", compensate=refund, retry=Retry(attempts=1))(lambda what: what)
    ledger = after((charge, {"what": "a"}))
    for _ in range(2):
        outcome = stopped(ledger, charge)
        assert isinstance(outcome, PutsOff) and not outcome.counts
    assert compensate(ledger, charge)
    assert len(undone) == 3 and len(set(undone)) == 1, "the same key each time"


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        (lambda: tool(compensate=give_back)(lambda x: x), "compensate is for writes"),
        (lambda: tool(kind="write", compensate=tool(give_back))(lambda x: x), "is a read"),
        (lambda: tool(kind="write", compensate=lambda text: None)(lambda x: x), "takes 'text'; it may take"),
    ],
)
def test_a_compensation_that_cannot_be_called_is_refused_when_it_is_declared(declared, what):
    with pytest.raises(GraphError, match=what):
        declared()


def failing(error: Exception, **options: Any) -> Tool:
    def give(result: str) -> None:
        undone.append(result)
        raise error

    return tool(kind="write", compensate=give, retry=Retry(attempts=1), **options)(lambda what: what)


@pytest.mark.parametrize(
    ("outcome", "left"), [("happened", "compensated"), ("give_up", "done"), ("not_happened", "done")]
)
def test_one_that_fails_for_good_is_settled_by_a_person(outcome, left):
    made = failing(Permanent("the period is closed"))
    ledger = after((made, {"what": "a"}))
    assert isinstance(stopped(ledger, made), Waits)
    entry = next(entry for entry in ledger.entries.values() if entry.compensates)
    assert (entry.status, entry.tried_at, entry.due_at) == ("in_doubt", None, None), "no need to wait with it"
    assert "failed for good: Permanent: the period is closed" in entry.error
    asked = codec.loads(ledger.entries[f"{entry.key}!"].request)
    assert "Undo that call by hand" in asked["why"]
    assert asked["settles"]["request"]["undoes"]["tool"] == made.name
    settle(ledger, outcome)
    if outcome == "not_happened":
        assert isinstance(stopped(ledger, made), Waits), "tried once more, it fails again and is asked anew"
        assert len(undone) == 2
    else:
        assert not compensate(ledger, made) or not compensate(ledger, made)
        assert len(undone) == 1
    assert next(iter(ledger.past.values())).status == left


def test_one_whose_outcome_is_unknown_waits_until_nothing_can_be_under_way_and_asks():
    for error in (Ambiguous("no answer"), ValueError("of the author's code")):
        undone.clear()
        made = failing(error)
        ledger = after((made, {"what": "a"}))
        (key,) = stopped(ledger, made).keys
        assert (ledger.entries[key].status, len(undone)) == ("open", 1)
        ledger.clock = ledger.entries[key].due_at
        assert stopped(ledger, made).keys == (f"{key}!",)
        assert str(error) in ledger.entries[key].error
        settle(ledger, "happened")
        assert not compensate(ledger, made)
        assert len(undone) == 1, "it was not called again"


def test_a_result_that_cannot_be_stored_is_no_reason_to_undo_it_again():
    made = tool(kind="write", compensate=lambda result: undone.append(result) or object())(lambda what: what)
    ledger = after((made, {"what": "a"}))
    assert compensate(ledger, made) and not compensate(ledger, made)
    assert len(undone) == 1


def lost(made: Tool, **arguments: Any) -> MemoryLedger:
    """A write was called in the step in progress, and no answer came."""
    ledger = MemoryLedger(operators=["ops"])
    with pytest.raises(Stop):
        Run(Questions(ledger), do_at_once).call(made, **arguments)
    return ledger


def losing(**options: Any) -> Tool:
    def send(what: str, idempotency_key: str) -> str:
        undone.append("sent")
        raise Ambiguous("no answer")

    retry = Retry(attempts=5, first=60)
    return tool(kind="write", compensate=lambda arguments: undone.append(arguments), retry=retry, **options)(
        send
    )


@pytest.mark.parametrize("found", [Found("it is there"), None])
def test_a_write_in_the_open_is_looked_for_first_and_never_sent_again(found):
    made = losing(reconcile=lambda key, arguments: found)
    ledger = lost(made, what="a")
    (key,) = stopped(ledger, made).keys
    ledger.clock = ledger.entries[key].due_at
    assert compensate(ledger, made) is bool(found)
    if found is None:
        assert (ledger.entries[key].status, undone) == ("failed", ["sent"])
        assert "not sent again" in ledger.entries[key].error
    else:
        assert (ledger.entries[key].status, undone) == ("compensated", ["sent", {"what": "a"}])


@pytest.mark.parametrize("honours_key", [True, False])
def test_where_the_provider_cannot_say_people_do_before_anything_is_undone(honours_key):
    made = losing(honours_key=honours_key)
    ledger = lost(made, what="a")
    (key,) = stopped(ledger, made).keys
    ledger.clock += timedelta(days=1)
    assert stopped(ledger, made).keys == (f"{key}!",)
    assert undone == ["sent"]
    settle(ledger, "happened")
    assert compensate(ledger, made) and not compensate(ledger, made)
    assert undone == ["sent", {"what": "a"}]


def test_two_in_doubt_are_asked_for_at_once():
    made = losing()
    ledger = lost(made, what="a")
    other = lost(made, what="b")
    ledger.entries |= other.entries
    ledger.clock += timedelta(days=1)
    assert len(stopped(ledger, made).keys) == 2


def test_without_the_code_that_would_undo_it_a_person_does_and_the_earlier_ones_follow():
    ledger = after((take, {"what": "a"}), (failing(Permanent("never called")), {"what": "b"}))
    (asked,) = stopped(ledger, take).keys
    assert "is not here" in codec.loads(ledger.entries[asked].request)["settles"]["error"]
    settle(ledger, "give_up")
    assert compensate(ledger, take), "the one before"
    assert not compensate(ledger, take)
    assert [entry.status for entry in ledger.past.values()] == ["compensated", "done"]


def test_the_keys_of_compensations_are_the_engines_own():
    with pytest.raises(Permanent, match="is the engine's own"):
        Run(Questions(MemoryLedger()), do_at_once).call(take, key="compensate:1:take", what="a")


def test_a_rehearsal_undoes_what_a_failed_run_did():
    graph = Graph("rehearsed-trip", on_failure="compensate", operators="ops")

    @graph.node(then="fail")
    def go(run, state):
        run.call(take, what="a")

    @graph.node
    def fail(run, state):
        run.call(take, what="b")
        raise Permanent("no")

    ended = rehearse(graph, {})
    assert (ended.status, ended.error_kind) == ("failed", "permanent")
    assert [result for _, result, _ in undone] == ["took b", "took a"]
    graph.on_failure = "keep"
    assert rehearse(graph, {}).status == "failed"
    assert len(undone) == 2


def test_a_secret_is_resolved_again_in_the_moment_of_the_call():
    made = tool(kind="write", compensate=give_back)(lambda what, token: f"took {what}")
    ledger = after(
        (made, {"what": "a", "token": codec.SecretRef("bank")}), secrets={"bank": "hunter2hunter2"}
    )
    assert compensate(ledger, made)
    assert undone[0][0] == {"what": "a", "token": "hunter2hunter2"}
    assert not any("hunter2" in entry.request for entry in ledger.entries.values())
