"""Where an agent stops: turns, tokens and money, and people who give it more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from runs import END, Ask, Graph
from runs.agent import Agent, AgentStopped, Budget, Reply
from runs.core.rehearsal import rehearse
from runs.language_model import Wish
from tests.runs.buying import (
    Case,
    buyer,
    run,
)

pytestmark = pytest.mark.usefixtures("nothing_bought")


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
