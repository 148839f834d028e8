"""An agent that buys things: its tools, what a script lets it say, and what it was told."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from runs import END, Ask, Graph, Permanent, tool
from runs.agent import Agent, Scripted, Talk, Use
from runs.core.rehearsal import Rehearsal, rehearse

sent: list[tuple[str, str, Decimal]] = []


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
