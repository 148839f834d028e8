"""The agent's loop, rehearsed: what it asks, what it is told, and where it stops (MISSION A21)."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from runs import END, Ask, Graph, GraphError, Permanent, tool
from runs.agent import Agent, AgentStopped, Budget, Reply, Scripted, Talk, Use
from runs.core.rehearsal import Rehearsal, rehearse
from runs.language_model import SCRIPTED, Wish

sent: list[tuple[str, str, Decimal]] = []


@pytest.fixture(autouse=True)
def nothing_was_sent() -> None:
    sent.clear()


class Stock(BaseModel):
    item: str
    left: int
    price: Decimal


class Report(BaseModel):
    summary: str
    items: list[str]


class Case(BaseModel):
    request: str = "Buy a lamp."
    talk: Talk = Talk()
    answer: str | Report | None = None


@tool
def stock(item: str, shop: str = "main") -> Stock:
    """How many are left, and what one costs."""
    return Stock(item=item, left=3, price=Decimal("19.90"))


@tool(kind="write", honours_key=True)
def order(item: str, amount: Decimal, *, idempotency_key: str) -> str:
    """Money is spent."""
    if item == "unicorn":
        raise Permanent("there are no unicorns")
    sent.append((idempotency_key, item, amount))
    return f"receipt {len(sent)}"


def above_fifty(item: str, amount: Decimal) -> Ask | None:
    return Ask(f"Buy {item} for {amount}?", reviewers="pm") if amount > 50 else None


ORDER = Use(order, approve=above_fifty, key="order:{run_id}:{item}")
ASKED = "order:{run_id}:lamp?"
CHEAP = ("order", {"item": "lamp", "amount": "19.90"})
DEAR = ("order", {"item": "lamp", "amount": 60})


def buyer(*script: Any, tools: tuple[Any, ...] = (stock, ORDER), **options: Any) -> Agent:
    return Agent("You buy things.", Scripted(*script), tools, **options)


def graph_of(agent: Agent, **given: Any) -> Graph:
    made = Graph("buyer", state=Case)

    @made.node(then=("work", END))
    def work(run, state):
        state.answer = agent.turn(run, state.talk, state.request, given)
        return "work" if state.answer is None else END

    return made


def run(agent: Agent, answers: dict[str, Any] | None = None, **given: Any) -> Rehearsal:
    return rehearse(graph_of(agent, **given), {}, answers)


def told(ended: Rehearsal) -> list[str]:
    """What the model was told about its calls."""
    return [message["content"] for message in ended.state.talk.messages if message["role"] == "tool"]


# -- a talk


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
    """A11"""
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


# -- arguments


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


# -- gates and keys


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


# -- people and results


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


# -- limits


def test_turns_are_bounded():
    ended = run(buyer(*[("stock", {"item": "lamp"})] * 9, max_turns=4))
    assert (ended.error_kind, ended.path) == ("permanent", ["work"] * 4)
    assert "agent: 4 turns are used, and it has not finished." in ended.error


def test_an_author_may_catch_a_limit():
    agent, graph = buyer(("stock", {"item": "lamp"}), max_turns=1), Graph("caught", state=Case)

    @graph.node(then=("work", END))
    def work(run, state):
        try:
            state.answer = agent.turn(run, state.talk, state.request)
        except AgentStopped as stopped:
            state.answer = str(stopped)
        return "work" if state.answer is None else END

    assert rehearse(graph, {}).state.answer == "agent: 1 turns are used, and it has not finished."


def costly(tokens: int, usd: str = "0") -> Reply:
    wish = Wish(id="call", name="stock", arguments='{"item": "lamp"}')
    return Reply(wishes=[wish], tokens=tokens, usd=Decimal(usd))


def test_what_replies_take_is_counted_and_in_the_ledger():
    ended = run(buyer(costly(900, "0.002"), Reply(text="Done.", tokens=100, usd=Decimal("0.001"))))

    assert (ended.state.talk.tokens, ended.state.talk.usd) == (1_000, Decimal("0.003"))
    spent = [entry.value for entry in ended.ledger.past.values() if entry.name == "spend"]
    assert spent == [{"tokens": 100, "usd": Decimal("0.001")}], "a rehearsal keeps the last of each key"


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(tokens=1_500), "agent: 1,800 of 1,500 tokens are used."),
        (Budget(usd="0.03"), "agent: 0.04 of 0.03 USD are used."),
    ],
)
def test_a_budget_stops_the_agent_before_its_next_turn(budget, words):
    ended = run(buyer(*[costly(900, "0.02")] * 9, budget=budget))
    assert (ended.status, ended.error_kind, ended.state.talk.turns) == ("failed", "permanent", 2)
    assert words in ended.error


MORE = "agent budget 3"


def asking_budget() -> Agent:
    ask = Ask("Go on buying?", reviewers="ops", why="Lamps are dear.")
    return buyer(*[costly(900, "0.02")] * 3, "Done.", budget=Budget(tokens=1_500, usd="0.05", ask=ask))


def test_people_raise_the_budget_by_as_much_again():
    requests: list[Any] = []

    def yes(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"verdict": "approve", "by": "olga"}

    ended = run(asking_budget(), {MORE: yes})
    assert (ended.status, ended.state.answer) == ("completed", "Done.")
    (request,) = requests
    assert request["payload"] == {"tokens": 1_500, "usd": 0.05}
    assert request["why"] == "Lamps are dear.\n\nAfter 2 turns, 1,800 of 1,500 tokens are used."
    assert (ended.state.talk.more_tokens, ended.state.talk.more_usd) == (1_500, Decimal("0.05"))


def test_people_raise_the_budget_by_what_they_write():
    little = {"verdict": "edit", "payload": {"tokens": 10, "usd": 0.5}, "by": "olga"}
    ended = run(asking_budget(), {MORE: little})
    assert (ended.error_kind, ended.state.talk.turns) == ("permanent", 2)
    assert "agent: 1,800 of 1,510 tokens are used." in ended.error


def test_people_who_do_not_raise_the_budget_end_the_run_as_rejected():
    ended = run(asking_budget(), {MORE: {"verdict": "reject", "reason": "Enough.", "by": "olga"}})
    assert (ended.status, ended.error_kind) == ("failed", "rejected")
    assert "Enough." in ended.error


def test_a_script_that_is_asked_for_more_says_so():
    ended = run(buyer(("stock", {"item": "lamp"})))
    assert (ended.status, ended.error_kind) == ("failed", "permanent")
    assert "The script has 1 replies, and was asked for one more." in ended.error
