"""An agent on real rows, on both databases: no reply is asked for twice, and a talk grows by what is said.

Kills are tested with the refund agent (tests/acceptance/test_refunds.py).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Sum
from django.db.models.functions import Length

from runs import Ask, Permanent, registry, start
from runs.agent import Agent, Reply, Scripted, Use
from runs.core.rules import Stage
from runs.errors import Invalid
from runs.language_model import Wish
from runs.testing import drive
from tests.runs.buying import CHEAP, DEAR, ORDER, buyer, graph_of, order, stock
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = 60
KILOBYTE = "x" * 1_000


class Counting(Scripted):
    """Keeps which of its replies were asked for."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.asked: list[int] = []

    def reply(self, messages, tools, api_key, timeout):
        self.asked.append(len(messages))
        return super().reply(messages, tools, api_key, timeout)


def test_a_turn_that_waits_for_people_does_not_ask_the_model_again():
    """MISSION A11: the node is executed anew after each wait, and within a turn after each failed attempt."""
    failures = iter([RuntimeError("a bug of the tool"), None])

    def order_once_more(item: str, amount: Decimal, *, idempotency_key: str) -> str:
        if error := next(failures):
            raise error
        return "receipt"

    again = Use(replace(order, fn=order_once_more), approve=Ask("Buy?", reviewers="pm"))
    script = Counting([("stock", {"item": "lamp"}), CHEAP, ("ask_person", {"question": "Now?"})], "Done.")
    agent = Agent("You buy.", script, [stock, again], ask=Ask("It asks", reviewers="pm"))
    first, second = "agent {run_id}:1.1.3", "order:{run_id}:1.1.2?"
    yes = {"verdict": "respond", "payload": {"answer": "Yes"}}
    run = drive(graph_of(agent), {}, {first: yes, second: {"verdict": "approve"}})
    assert (run.status, run.state_at()["answer"]) == ("completed", "Done.")
    assert script.asked == [2, 6]
    assert run.checkpoints.filter(kind__in=("wait", "retry")).count() >= 3


def test_a_talk_is_stored_by_what_was_said():
    """P7, D6: the second half of a talk takes as much as the first, in checkpoints and in the ledger."""
    wish = Wish(id="call", name="stock", arguments='{"item": "lamp"}')
    script = Scripted(*[Reply(text=KILOBYTE, wishes=[wish])] * TURNS, "Done.")
    run = drive(graph_of(Agent("You talk.", script, [stock], max_turns=TURNS + 1)), {})
    assert (run.status, run.step, len(talk_of(run)["messages"])) == (
        "completed",
        TURNS + 1,
        2 * TURNS + 3,
    )
    half = TURNS // 2
    first = stored(run, step__lte=half)
    second = stored(run, step__gt=half)
    assert second < 1.3 * first, (first, second)
    assert first + second < 5 * TURNS * len(KILOBYTE)


def talk_of(run: Any) -> dict[str, Any]:
    return run.state_at()["talk"]["v"]


def stored(run: Any, **steps: Any) -> int:
    """Bytes of bodies, requests and results."""
    bodies = run.checkpoints.filter(**steps).aggregate(size=Sum(Length("body")))
    entries = run.entries.filter(**steps).aggregate(size=Sum(Length("request")) + Sum(Length("result")))
    return bodies["size"] + entries["size"]


def test_what_people_change_is_checked_as_the_tool_would_take_it(ada):
    """The graph's module names the agent alone: its tools, and rules, are found behind it."""
    graph = graph_of(buyer(DEAR))
    with registered(graph):
        run = start(graph, {})
        request = {"call": {"tool": "order"}}
        assert registry.check_payload(run, request, {"item": "lamp", "amount": "7"}) == {
            "item": "lamp",
            "amount": "7",
        }
        with pytest.raises(Invalid, match="amount"):
            registry.check_payload(run, request, {"item": "lamp", "amount": "much"})


def known_shop(payload: dict[str, Any]) -> None:
    raise Permanent("never called here")


def test_an_agent_reaches_its_tools_and_rules():
    staged = Ask("Buy?", stages=(Stage("pm"), Stage("ops", when=known_shop)), policy=known_shop)
    behind = list(Agent("", Scripted(), [stock, ORDER, Use(replace(order, name="other"), staged)]).reaches())
    assert stock in behind and ORDER.tool in behind and ORDER.approve in behind
    assert behind.count(known_shop) == 2


def test_an_agent_that_fails_keeps_its_talk():
    run = drive(graph_of(buyer(*[("stock", {"item": "lamp"})] * 3, max_turns=2)), {})
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert talk_of(run)["turns"] == 2
