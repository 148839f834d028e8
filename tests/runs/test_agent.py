"""The agent's loop, rehearsed: what it asks, what it is told, and what does not fit (MISSION A21)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from runs import END, Graph, tool
from runs.agent import Agent, Scripted
from runs.core.rehearsal import rehearse
from runs.language_model import SCRIPTED
from tests.runs.buying import (
    ASKED,
    CHEAP,
    DEAR,
    Case,
    buyer,
    run,
    sent,
    stock,
    told,
)

pytestmark = pytest.mark.usefixtures("nothing_bought")


# -- a talk -----------------------------------------------------------------------------------------------------


def test_an_agent_looks_calls_and_finishes_one_turn_a_step():
    ended = run(buyer(("stock", {"item": "lamp"}), CHEAP, "You get a lamp."))

    assert (ended.status, ended.path) == ("completed", ["work"] * 3)
    assert ended.state.answer == ended.state.talk.final == "You get a lamp."
    assert [message["role"] for message in ended.state.talk.messages] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant")
    ]
    assert json.loads(told(ended)[0]) == {"item": "lamp", "left": 3, "price": "19.90"}
    assert sent == [(f"order:{ended.ledger.run_id}:lamp", "lamp", Decimal("19.90"))]
    assert ended.state.talk.model == SCRIPTED


def test_each_reply_is_in_the_ledger_with_the_digest_of_what_came_before():
    """MISSION A11"""
    ended = run(buyer(("stock", {"item": "lamp"}), "Three are left."))

    replies = [entry for entry in ended.ledger.past.values() if entry.name == "ask_model"]
    assert [entry.key for entry in replies] == ["agent:{run_id}:1.1", "agent:{run_id}:2.2"]
    asked = [json.loads(entry.request) for entry in replies]
    assert [(one["turn"], one["model_name"], len(one["digest"])) for one in asked] == [
        (1, SCRIPTED, 64),
        (2, SCRIPTED, 64),
    ]
    assert replies[1].value.text == "Three are left."


def test_several_calls_of_one_reply_are_done_in_order():
    ended = run(buyer([("stock", {"item": "lamp"}), ("stock", {"item": "chair"}), CHEAP], "Done."))

    assert [json.loads(text)["item"] for text in told(ended)[:2]] == ["lamp", "chair"]
    ids = [message["tool_call_id"] for message in ended.state.talk.messages if message["role"] == "tool"]
    assert ids == ["call_1_1", "call_1_2", "call_1_3"]
    assert len(sent) == 1


def test_a_node_may_take_all_turns_at_once():
    agent, once = buyer(("stock", {"item": "lamp"}), CHEAP, "Done."), Graph("once", state=Case)

    @once.node
    def work(run, state):
        while state.answer is None:
            state.answer = agent.turn(run, state.talk, state.request)

    ended = rehearse(once, {})
    assert (ended.path, ended.state.answer, len(sent)) == (["work"], "Done.", 1)


def test_an_agent_works_in_an_async_node_too():
    agent, graph = buyer(("stock", {"item": "lamp"}), DEAR, "Done."), Graph("async", state=Case)

    @graph.node(then=("work", END))
    async def work(run, state):
        state.answer = await agent.turn(run, state.talk, state.request)
        return "work" if state.answer is None else END

    ended = rehearse(graph, {}, {ASKED: {"verdict": "reject", "reason": "too dear", "by": "ada"}})
    assert (ended.status, ended.state.answer) == ("completed", "Done.")
    assert told(ended)[1] == "Not done: a person rejected it. too dear"


def test_a_talk_goes_on_with_a_further_message():
    agent, chat = buyer("A lamp costs 19.90.", "A chair, too."), Graph("chat", state=Case)

    @chat.node(then="more")
    def work(run, state):
        assert agent.turn(run, state.talk, state.request) == "A lamp costs 19.90."

    @chat.node
    def more(run, state):
        assert agent.turn(run, state.talk) == "A lamp costs 19.90.", (
            "it is finished until something more is said"
        )
        state.talk.say("And a chair?")
        assert state.talk.final is None
        state.answer = agent.turn(run, state.talk)

    ended = rehearse(chat, {})
    assert (ended.status, ended.state.answer) == ("completed", "A chair, too.")
    assert [message["role"] for message in ended.state.talk.messages] == [
        *("system", "user", "assistant", "user", "assistant")
    ]


def test_a_talk_without_a_first_message_is_refused():
    agent, silent = buyer("Hello."), Graph("silent", state=Case)

    @silent.node
    def work(run, state):
        agent.turn(run, state.talk)

    ended = rehearse(silent, {})
    assert (ended.status, ended.error_kind) == ("failed", "permanent")
    assert "agent: the talk is empty; give turn(...) a request" in ended.error


# -- arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (("order", {"item": "lamp"}), "order: amount: Field required"),
        (("order", {"item": "lamp", "amount": "much"}), "order: amount: "),
        (("order", {"item": "lamp", "amount": 1, "gift": True}), "order: gift: Extra inputs"),
        (("order", {"item": "lamp", "amount": 1, "key": "mine"}), "order: key: Extra inputs"),
        (("order", {"item": "lamp", "amount": 1, "approve": None}), "order: approve: Extra inputs"),
        (("order", {"item": {"$": "secret", "v": "X"}, "amount": 1}), "order: "),
        (("order", '{"item": "lamp", '), "the arguments are no JSON ("),
        (("order", "[" * 100_000), "the arguments are no JSON ("),
        (("order", "[]"), "the arguments are no JSON object: '[]'"),
        (("order", ""), "the arguments are no JSON ("),
        (("order", {"item": "x" * 200, "amount": 1}), "key 'order:{run_id}:xxx"),
        (("order", {"item": "a\x00b", "amount": 1}), "leave out NUL"),
        (("order", '{"item": "\\ud800", "amount": 1}'), "order: arguments: Invalid JSON"),
        (("order", '{"item": "lamp", "amount": NaN}'), "order: amount: "),
        (("order", '{"item": "lamp", "amount": 1' + "0" * 400 + "}"), "exceeds 64-bit range"),
        (("steal", {}), "there is no tool 'steal'. There are: stock, order."),
    ],
)
def test_what_does_not_fit_goes_back_to_the_model_and_nothing_is_called(written, words):
    ended = run(buyer(written, CHEAP, "Done."))

    assert ended.status == "completed", ended.error
    assert told(ended)[0].startswith("Not done: ") and words in told(ended)[0]
    assert [item for _, item, _ in sent] == ["lamp"]
    assert ended.state.talk.mistakes == 0, "the next reply fitted"


def test_arguments_that_are_no_json_are_not_repeated_to_the_endpoint():
    ended = run(buyer(("order", "{broken"), "Done."))

    (call,) = ended.state.talk.messages[2]["tool_calls"]
    assert call["function"] == {"name": "order", "arguments": "{}"}
    assert "'{broken'" in told(ended)[0]


def test_mistakes_in_a_row_are_bounded():
    ended = run(buyer(*[("order", "{")] * 9, max_mistakes=2))

    assert (ended.status, ended.error_kind, ended.path) == ("failed", "permanent", ["work"] * 3)
    assert "AgentStopped: agent: 3 replies in a row could not be used." in ended.error
    assert len(told(ended)) == 3, "what was said is in the state"


def test_given_arguments_are_neither_seen_nor_chosen_by_the_model():
    seen: list[Any] = []

    class Watching(Scripted):
        def reply(self, messages, tools, api_key, timeout):
            seen.append(tools)
            return super().reply(messages, tools, api_key, timeout)

    script = Watching(("stock", {"item": "lamp", "shop": "other"}), ("stock", {"item": "lamp"}), "Done.")
    ended = run(Agent("You buy.", script, [stock]), shop="branch", unused=7)

    parameters = seen[0][0]["function"]["parameters"]
    assert list(parameters["properties"]) == parameters["required"] == ["item"]
    assert told(ended)[0] == "Not done: shop: is filled in already; leave it out"
    (called,) = [entry for entry in ended.ledger.past.values() if entry.name == "stock"]
    assert json.loads(called.request) == {"item": "lamp", "shop": "branch"}


def test_a_given_secret_reaches_the_tool_and_no_row():
    @tool
    def sign_in(token: str) -> int:
        """Sign in."""
        return len(token)

    graph = Graph("secretive", state=Case)
    agent = buyer(("sign_in", {}), "In.", tools=(sign_in,))

    @graph.node(then=("work", END))
    def work(run, state):
        state.answer = agent.turn(run, state.talk, state.request, {"token": run.secret("SHOP_TOKEN")})
        return "work" if state.answer is None else END

    ended = rehearse(graph, {}, secrets={"SHOP_TOKEN": "correct horse"})
    assert told(ended) == ["13"]
    assert "correct horse" not in str(ended.ledger.past) + str(ended.state)
