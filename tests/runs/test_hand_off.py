"""An agent that hands its talk over to another graph: a child with the same root, the same talk and one budget."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel

from runs import END, Ask, Graph, GraphError, Permanent, Retry
from runs.agent import Agent, Budget, HandOff, Reply, Scripted, Talk, Use, Wish
from runs.core.rehearsal import rehearse
from runs.models import Run
from runs.testing import crash_everywhere, drive
from tests.amounts import THOROUGH
from tests.runs.buying import order, sent, stock
from tests.runs.driving import registered


@pytest.fixture(autouse=True)
def nothing_was_sent() -> None:
    sent.clear()


class Case(BaseModel):
    request: str = "Buy a lamp."
    talk: Talk = Talk()
    answer: str | None = None


def graph_of(name: str, agent: Agent, is_async: bool = False) -> Graph:
    graph = Graph(name, state=Case, operators="ops")

    async def work(run, state):
        state.answer = await agent.turn(run, state.talk, state.request)
        return "work" if state.answer is None else END

    def work_in_thread(run, state):
        state.answer = agent.turn(run, state.talk, state.request)
        return "work_in_thread" if state.answer is None else END

    node = work if is_async else work_in_thread
    graph.node(then=(node.__name__, END))(node)
    return graph


def costly(tokens: int, **said: object) -> Reply:
    return Reply(tokens=tokens, usd=Decimal("0.01"), **said)


def wish(tool: str, arguments: str, id: str = "call_1") -> Wish:
    return Wish(id=id, name=tool, arguments=arguments)


BUYS = costly(30, wishes=[wish("order", '{"item": "lamp", "amount": "19.90"}', "call_9")])


def house(is_async: bool = False, said: bool = True, **budget: object) -> tuple[Graph, Graph]:
    """The desk at the door, and the buyer to whom it hands over; then it looks at the stock and ends."""
    buyer = Agent(
        "You buy.",
        Scripted(
            *[lambda messages: BUYS if messages[-1]["role"] == "user" else costly(20, text="Bought.")] * 9
        ),
        [Use(order, key="order:{run_id}:{item}")],
        name="buyer",
        budget=Budget(**budget),
    )
    buying = graph_of("buying", buyer, is_async)
    hands = costly(100, wishes=[wish("buyer", '{"request": "Buy one lamp."}')])
    desk = Agent(
        "You are at the door.",
        Scripted(("stock", {"item": "lamp"}), hands, costly(5, text="It is yours.")),
        [stock, HandOff(buying, "buyer", "Somebody who can buy things.", said=said)],
        name="desk",
    )
    return graph_of("desk", desk, is_async), buying


@pytest.mark.parametrize("said", [True, False])
def test_the_child_goes_on_with_the_talk_and_its_spending_counts(said):
    desk, buying = house(said=said)
    ended = rehearse(desk, {})
    talk = ended.state.talk
    assert (ended.status, ended.state.answer, len(sent)) == ("completed", "It is yours.", 1)
    assert (talk.tokens, talk.usd) == (100 + 30 + 20 + 5, Decimal("0.04"))
    assert talk.messages[-2]["content"] == "Bought."
    offered = next(tool for tool in agent_tools(desk) if tool["function"]["name"] == "buyer")
    assert offered["function"]["description"] == "Somebody who can buy things."


def agent_tools(desk: Graph) -> list[dict]:
    node = next(iter(desk.nodes.values())).fn
    agent = next(cell.cell_contents for cell in node.__closure__ if isinstance(cell.cell_contents, Agent))
    return agent._tools({})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_async", [False, True])
def test_root_trail_and_messages_are_those_of_one_family(is_async):
    desk, buying = house(is_async)
    with registered(desk, buying):
        run = drive(desk, {})
        [child] = Run.objects.filter(parent=run)
    assert (run.status, child.status, child.root) == ("completed", "completed", run.pk)
    assert run.state_at()["answer"] == "It is yours."
    messages = child.state_at()["talk"]["v"]["messages"]
    assert [message["role"] for message in messages][:5] == ["system", "user", "assistant", "tool", "user"]
    assert (messages[0]["content"], messages[4]["content"]) == ("You buy.", "Buy one lamp.")
    assert not any("buyer" in str(message.get("tool_calls")) for message in messages), (
        "that call is not answered yet"
    )
    assert sent[-1][0] == f"order:{child.pk}:lamp"


@pytest.mark.django_db(transaction=True)
def test_what_was_spent_before_counts_for_the_childs_budget_and_what_people_allow_it_counts_after():
    more = Ask("Let it go on?", reviewers="ops")
    desk, buying = house(tokens=110, ask=more)
    allowed = {"verdict": "edit", "payload": {"tokens": 500, "usd": 0}, "by": "olga"}
    with registered(desk, buying):
        run = drive(desk, {}, {"buyer budget 2": allowed})
    assert (run.status, run.state_at()["talk"]["v"]["more_tokens"]) == ("completed", 500)


def test_a_child_that_fails_is_told_as_a_failure():
    desk, buying = house(tokens=10)
    ended = rehearse(desk, {})
    told = ended.state.talk.messages[-2]["content"]
    assert ended.status == "completed" and told.startswith("It failed: AgentStopped: buyer: 1")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("on_rows", [False, True], ids=["rehearsed", "on rows"])
def test_what_a_child_that_fails_has_spent_counts_for_the_talk(on_rows):
    """A21: or a budget could be spent once more with each hand-off."""
    spent = []

    def unusable(messages):
        spent.append(100)
        return costly(100, text="", wishes=[wish("nothing", "{}", "n")])

    buyer = Agent(
        "You buy.", Scripted(*[unusable] * 40), name="buyer", budget=Budget(tokens=1000), max_mistakes=3
    )
    buying = graph_of("buying in vain", buyer)
    hands_over = [costly(1, wishes=[wish("buyer", '{"request": "Buy."}', f"h{n}")]) for n in range(30)]
    hand = HandOff(buying, "buyer", "x", said=False)
    door = Agent(
        "Door.", Scripted(*hands_over), [hand], name="door", budget=Budget(tokens=1000), max_turns=20
    )
    desk = graph_of("desk in vain", door)
    if on_rows:
        with registered(desk, buying):
            run = drive(desk, {})
        status, tokens = run.status, run.state_at()["talk"]["v"]["tokens"]
    else:
        ended = rehearse(desk, {})
        status, tokens = ended.status, ended.state.talk.tokens
    assert status == "failed" and 900 <= tokens <= sum(spent) + 20 <= 1500


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("on_rows", [False, True], ids=["rehearsed", "on rows"])
def test_what_a_step_that_fails_has_spent_counts_and_what_those_have_to_whom_it_had_handed_over(on_rows):
    """A21: no state tells of it, for that step was never committed; the ledger does."""
    last = graph_of("helper at work", Agent("", Scripted(*[costly(10, text="Here.")] * 90), name="last"))
    hands = costly(10, wishes=[wish("last", '{"request": "Help."}', "h")])
    middle = Agent("", Scripted(*[hands] * 90), [HandOff(last, "last", "x", said=False)], name="middle")
    breaking = Graph("breaks in its step", state=Case, operators="ops")

    @breaking.node(retry=Retry(attempts=1))
    def break_after_it(run, state):
        middle.turn(run, state.talk, state.request)
        raise Permanent("that cannot be used")

    again = [costly(10, wishes=[wish("middle", '{"request": "Go."}', f"a{n}")]) for n in range(20)]
    hand = HandOff(breaking, "middle", "x", said=False)
    budget = Budget(tokens=75)
    top = graph_of("hands over in vain", Agent("", Scripted(*again), [hand], name="top", budget=budget))
    if on_rows:
        with registered(top, breaking, last):
            run = drive(top, {})
        error, talk = run.error, run.state_at()["talk"]["v"]
        spent = talk["tokens"], Decimal(talk["usd"]["v"])
    else:
        ended = rehearse(top, {})
        error, spent = ended.error, (ended.state.talk.tokens, ended.state.talk.usd)
    assert "90 of 75 tokens are used" in error and spent == (90, Decimal("0.09"))


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(GraphError, match="'stock' is taken"):
        Agent("", Scripted(), [stock, HandOff("buying", "stock", "Somebody.")])


@pytest.mark.django_db(transaction=True)
def test_no_kill_hands_over_twice_or_buys_twice():
    desk, buying = house()
    with registered(desk, buying):
        report = crash_everywhere(desk, {}, kills=12 if THOROUGH else 3)
    assert (report.status, report.effects, report.in_doubt) == ("completed", {"order": 1}, 0)
