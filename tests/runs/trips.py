"""Trips that fail or are cancelled after they have booked and told, and so undo it (or, in `kept`, do not)."""

from __future__ import annotations

from datetime import timedelta

from runs import Ask, Graph, Retry, Transient, start
from runs.models import Run
from tests.runs.driving import drive
from tests.runs.travel import Trip, book, refuse, tell

trip = Graph("trip", state=Trip, operators="ops", on_failure="compensate")


@trip.node(then="confirm")
def arrange(run, state):
    for thing in state.things:
        state.log.append(run.call(book, what=thing))


@trip.node(retry=Retry(attempts=2, first=60))
def confirm(run, state):
    run.call(tell, to="ada")
    match state.then:
        case "fail":
            refuse()
        case "ask":
            run.interrupt("Go?", due=timedelta(hours=1))
        case "call":
            run.call(tell, to="bob")
        case "gate":
            run.call(tell, to="bob", approve=Ask("Tell bob?"))
        case "retry":
            raise Transient("closed")


kept = Graph("kept-trip", state=Trip, operators="ops")


@kept.node
def arrange_only(run, state):
    run.call(book, what="flight")
    refuse()


ALL_DONE = ["booked flight", "booked hotel", "told ada"]


ALL_UNDONE = ["told ada otherwise", "cancelled HOTEL", "cancelled FLIGHT"]


def started(then: str = "fail", graph: Graph = trip) -> Run:
    """Driven as far as it goes by itself."""
    run = start(graph, {"then": then})
    drive(run)
    return run


def statuses(run: Run) -> dict[str, str]:
    writes = run.entries.filter(write=True).order_by("id")
    return {f"{entry.name} {entry.step}": entry.status for entry in writes}
