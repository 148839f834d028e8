"""Graphs whose steps can be made to fail, and a world that remembers what was done: what repairs are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from runs import END, Ask, EffectFailed, Graph, Permanent, Retry, start, tool
from runs.models import Run
from tests.runs.driving import drive

done: list[str] = []  # what has happened outside, in order
under: list[str] = []  # the idempotency keys of what was built, in order
faults: dict[str, list[Exception | Callable[[], Any]]] = {}  # what the next calls meet, by what they make
ONCE = Retry(attempts=1)


class Order(BaseModel):
    item: str = "chair"
    note: str = ""
    log: list[str] = []


def meet(item: str) -> None:
    if faults.get(item):
        fault = faults[item].pop(0)
        if isinstance(fault, Exception):
            raise fault
        fault()


@tool(kind="write", retry=ONCE)
def build(item: str, idempotency_key: str) -> str:
    meet(item)
    done.append(item)
    under.append(idempotency_key)
    return item.upper()


@tool(kind="write", retry=ONCE)
def sell(item: str, price: int) -> str:
    meet(item)
    done.append(f"sold {item} for {price}")
    return f"{item} sold"


@tool
def measure(item: str) -> str:
    meet(f"measure {item}")
    return f"{item} measured"


workshop = Graph("workshop", state=Order, operators="ops")


@workshop.node(then="deliver", retry=ONCE)
def make(run, state):
    state.log.append(run.call(build, item="wood"))
    state.log.append(run.call(build, item=state.item, key="make:{run_id}"))
    state.log.append(run.once("varnish", lambda: "varnished"))


@workshop.node(then=("deliver", "present", END), retry=ONCE)
def deliver(run, state):
    state.log.append(run.call(measure, item=state.item))
    return "present" if state.note == "gift" else END


@workshop.node(retry=ONCE)
def present(run, state):
    state.log.append("wrapped")


selling = Graph("selling", state=Order, operators="ops")


@selling.node(retry=ONCE)
def offer(run, state):
    price = len(state.item)
    state.log.append(run.call(sell, item=state.item, price=price, approve=Ask("Sell it?", reviewers="pm")))


asking = Graph("workshop-asking", state=Order, operators="ops")


@asking.node(retry=ONCE)
def ask(run, state):
    state.log.append(run.call(build, item="wood"))
    state.log.append(run.interrupt("Which colour?", name="colour", reviewers=("pm",)).verdict)
    state.log.append(str(run.wait_for("paid")))


careful = Graph("workshop-careful", state=Order, operators="ops")


@careful.node(retry=ONCE)
def make_either(run, state):
    try:
        state.log.append(run.call(build, item="wood"))
    except EffectFailed:
        state.log.append(run.call(sell, item="scrap", price=1))
    state.log.append(run.call(build, item=state.item))


either = Graph("workshop-either", state=Order, operators="ops")


@either.node(retry=ONCE)
def make_one(run, state):
    if state.note == "skip":
        state.log.append("by hand")
        return
    try:
        state.log.append(run.call(build, item=state.item))
    except EffectFailed:
        state.log.append(run.call(sell, item="scrap", price=1))
    run.call(build, item="last")


side_by_side = Graph("workshop-side-by-side", state=Order, operators="ops")


@side_by_side.node(retry=ONCE)
def make_all(run, state):
    state.log += run.gather(*[build.bind(item=item) for item in ("wood", state.item, "lamp")])


once_more = Graph("workshop-once-more", state=Order, operators="ops")


@once_more.node(then="pay", retry=ONCE)
def order(run, state):
    state.log.append(run.call(build, item="wood", key="wood:{run_id}"))
    state.log.append(
        run.call(sell, item="plan", price=1, key="plan:{run_id}", approve=Ask("Sell it?", reviewers="pm"))
    )


@once_more.node(then="look", retry=ONCE)
def pay(run, state):
    state.log.append(run.call(build, item=state.item))


@once_more.node(retry=ONCE)
def look(run, state):
    state.log.append(run.call(build, item="wood", key="wood:{run_id}"))
    state.log.append(
        run.call(sell, item="plan", price=1, key="plan:{run_id}", approve=Ask("Sell it?", reviewers="pm"))
    )


broken = Permanent("the saw is broken")
ALL = (workshop, selling, asking, careful, either, side_by_side, once_more)


def failed(graph: str = "workshop", item: str = "chair", **given: Any) -> Run:
    """A run that could not make its `item`."""
    faults.setdefault(item, []).append(Permanent("the saw is broken"))
    run = start(graph, {"item": item, **given})
    drive(run)
    assert run.status == "failed", run.error
    return run
