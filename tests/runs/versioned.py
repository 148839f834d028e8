"""One graph as its code was on three days. `to` in the first state says in which node its migration puts the run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from runs import Ask, Graph, Retry, Transient, tool

LIMIT = timedelta(seconds=1)


class First(BaseModel):
    log: list[str] = []
    to: str = ""


class Later(BaseModel):
    log: list[str] = []
    parcels: int


@tool(kind="write", limit=LIMIT)
def ship(parcel: str) -> str:
    return f"shipped {parcel}"


first = Graph("versioned", version=1, state=First, operators="ops", queue="old")


@first.node(then="pack")
def ask(run: Any, state: First) -> None:
    said = run.gather(Ask("Pack it?", {"n": 1}, name="ok"), Ask("Wrap it?", name="wrap"))
    state.log += [f"{answer.verdict} 1" for answer in said]


@first.node(retry=Retry(attempts=3, first=30))
def pack(run: Any, state: First) -> None:
    state.log.append(run.call(ship, parcel="A"))
    if state.to == "busy":
        raise Transient("busy")


second = Graph("versioned", version=2, state=Later, operators="ops")


@second.node(then="box", name="ask")
def ask_again(run: Any, state: Later) -> None:
    said = run.gather(Ask("Pack it?", {"n": 2}, name="ok"), Ask("Wrap it?", name="wrap"))
    state.log += [f"{answer.verdict} 2" for answer in said]


@second.node
def box(run: Any, state: Later) -> None:
    state.log.append(run.call(ship, key="box:{run_id}", parcel="B"))


@second.migrate(1)
def from_first(state: dict[str, Any], node: str) -> tuple[dict[str, Any], str]:
    renamed = {"pack": "box"}.get(node, node)
    return {"log": [*state["log"], f"1 at {node}"], "parcels": 1}, state["to"] or renamed


third = Graph("versioned", version=3, state=Later, operators="ops")
third.node(ask_again, then="box", name="ask")
third.node(box)
third.migrate(1)(from_first)


@third.migrate(2)
def from_second(state: dict[str, Any], node: str) -> tuple[dict[str, Any], str]:
    return state | {"log": [*state["log"], f"2 at {node}"], "parcels": 2}, node


unserved = Graph("versioned", version=4, state=Later, operators="ops")
unserved.node(box)
