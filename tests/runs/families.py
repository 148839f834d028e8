"""Graphs whose runs start others, and small steps for tests of families."""

from __future__ import annotations

from pydantic import BaseModel

from runs import Graph, Permanent
from runs.models import Run
from tests.runs.driving import drive
from tests.runs.states import Log


class Part(BaseModel):
    name: str
    done: str = ""


leaf = Graph("child-leaf", state=Part)


@leaf.node
def work(run, state):
    if state.name == "bad":
        raise Permanent("it is bad")
    state.done = state.name.upper()


slow = Graph("child-slow", state=Log)


@slow.node
def wait(run, state):
    state.log.append(str(run.wait_for("go")))


waiter = Graph("child-waiter", state=Log)


@waiter.node
def start_and_wait(run, state):
    [end] = run.join(run.start(slow))
    state.log += [end.status, *(end.result or {"log": []})["log"]]


mapper = Graph("child-mapper")


@mapper.node
def map_all(run, state):
    ends = run.map(leaf, [{"name": name} for name in state["names"]], at_once=state.get("at_once", 50))
    state["ends"] = [
        end.result["done"] if end.completed else f"{end.status} {end.error_kind}" for end in ends
    ]


GRAPHS = (leaf, slow, waiter, mapper)


def children_of(run: Run) -> list[Run]:
    return list(run.children.order_by("created_at", "item"))


def drive_all(run: Run) -> None:
    """As far as it goes: the deepest of the family that is due first, until nothing is."""
    while (
        due := Run.objects.filter(root=run.root, wake_at__isnull=False).order_by("-depth", "id").first()
    ) is not None:
        before = due.seq, due.wake_at
        drive(due)
        if (due.seq, due.wake_at) == before:
            break
    run.refresh_from_db()
