"""What people decide of what an agent does, under which key it is done, and what comes of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from runs import Ask, GraphError, tool
from runs.agent import Reply, Use
from tests.runs.buying import (
    ASKED,
    CHEAP,
    DEAR,
    Report,
    buyer,
    order,
    run,
    sent,
    stock,
    told,
)

pytestmark = pytest.mark.usefixtures("nothing_bought")


# -- gates and keys ---------------------------------------------------------------------------------------------


def test_a_risky_call_waits_for_people_and_runs_as_they_changed_it():
    assert run(buyer(DEAR, "Done.")).waits_for == (ASKED,)

    less = {"verdict": "edit", "payload": {"item": "lamp", "amount": "55"}, "by": "ada"}
    ended = run(buyer(DEAR, "Done."), {ASKED: less})
    assert told(ended) == ['A person changed it to {"amount":"55","item":"lamp"}. receipt 1']
    assert [(item, amount) for _, item, amount in sent] == [("lamp", Decimal("55"))]


def test_what_was_approved_as_proposed_is_told_without_more():
    ended = run(buyer(DEAR, "Done."), {ASKED: {"verdict": "approve", "by": "ada"}})
    assert told(ended) == ["receipt 1"]


def test_a_rejection_goes_back_with_its_reason_and_the_model_may_propose_less():
    no = {"verdict": "reject", "reason": "Too dear.", "by": "ada"}
    ended = run(buyer(DEAR, CHEAP, "Done."), {ASKED: no})

    assert told(ended) == ["Not done: a person rejected it. Too dear.", "receipt 1"]
    assert [amount for _, _, amount in sent] == [Decimal("19.90")]


def test_a_question_that_expires_goes_back_too():
    late = {"verdict": "reject", "outcome": "expired", "by": ""}
    ended = run(buyer(DEAR, "Never mind."), {ASKED: late})
    assert (told(ended), sent) == (["Not done: nobody decided in time."], [])


def test_the_same_call_again_returns_what_was_recorded_and_another_under_its_key_is_refused():
    ended = run(buyer(CHEAP, CHEAP, ("order", {"item": "lamp", "amount": 5}), "Done."))

    first, again, other = told(ended)
    assert first == again == "receipt 1"
    assert other.startswith(
        "Not done: key 'order:{run_id}:lamp' was used in step 1 for order with other arguments"
    )
    assert len(sent) == 1


def test_one_key_twice_in_one_reply_is_done_once():
    ended = run(buyer([CHEAP, CHEAP], "Done."))
    assert told(ended)[0] == "receipt 1" and "was asked twice in one execution" in told(ended)[1]
    assert len(sent) == 1


def test_without_a_key_of_its_own_each_call_is_another_one():
    ended = run(buyer([CHEAP, CHEAP], CHEAP, "Done.", tools=(order,)))
    assert told(ended) == ["receipt 1", "receipt 2", "receipt 3"]
    assert len({key for key, _, _ in sent}) == 3


def test_a_key_that_names_no_argument_is_told_to_the_model_and_bounded():
    ended = run(buyer(*[CHEAP] * 9, tools=(Use(order, key="order:{shop}"),)))
    assert ended.error_kind == "permanent"
    assert "the key 'order:{shop}' cannot be filled in" in told(ended)[0]


def test_a_tool_that_fails_for_good_is_told():
    ended = run(buyer(("order", {"item": "unicorn", "amount": 1}), "Sorry."))
    assert told(ended) == ["It failed: Permanent: there are no unicorns"]
    assert ended.state.answer == "Sorry."


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(GraphError, match="'stock' is taken"):
        buyer("", tools=(stock, Use(stock)))


# -- people and results -----------------------------------------------------------------------------------------


def test_the_agent_asks_a_person():
    agent = buyer(
        ("ask_person", {"question": "Which colour?"}),
        "A green one.",
        ask=Ask("The buyer asks", reviewers="sales", due=timedelta(hours=1)),
    )
    asked = "agent {run_id}:1.1.1"
    requests: list[Any] = []

    def green(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"verdict": "respond", "payload": {"answer": "Green"}, "by": "bob"}

    ended = run(agent, {asked: green})
    assert told(ended) == ["bob answers: Green"]
    (request,) = requests
    assert (request["question"], request["why"]) == ("Which colour?", "The buyer asks")
    assert (request["reviewers"], request["verdicts"], request["due"]) == (["sales"], ["respond"], 3600)

    late = run(agent, {asked: {"verdict": "reject", "outcome": "expired", "by": ""}})
    assert told(late) == ["Nobody answered in time."]


def test_an_agent_that_may_ask_nobody_has_no_such_tool():
    ended = run(buyer(("ask_person", {"question": "Which colour?"}), "Done."))
    assert told(ended) == ["Not done: there is no tool 'ask_person'. There are: stock, order."]


def test_a_result_of_an_agreed_form_is_validated():
    right = ("finish", {"summary": "A lamp.", "items": ["lamp"]})
    ended = run(buyer("I am done.", ("finish", {"summary": 1}), right, output=Report))

    assert ended.state.answer == Report(summary="A lamp.", items=["lamp"])
    assert ended.state.talk.messages[3] == {"role": "user", "content": "Call finish with your result."}
    assert told(ended)[0].startswith("Not done: summary: ")
    assert (told(ended)[1], ended.state.talk.turns) == ("Finished.", 3)


def test_a_text_that_was_cut_off_is_not_the_end():
    ended = run(buyer(Reply(text="You get a la", cut=True), "A lamp."))
    assert ended.state.answer == "A lamp."


def test_a_long_result_is_cut_for_the_model():
    @tool
    def read() -> str:
        """A book."""
        return "x" * 30_000

    ended = run(buyer(("read", {}), "Long.", tools=(read,)))
    assert told(ended)[0].endswith("x … (30,000 characters in all)") and len(told(ended)[0]) < 20_100
