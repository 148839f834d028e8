"""A family that has all that a run can have: what goes to the archive with it, and is read there as before.

A signal that is read and one that is not, children alone and in a fan-out, a gated call that is approved with an edit,
a blob, a price, a refusal that ends it, and a compensation of what was done.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from runs import Ask, Graph, start, tool
from runs.engine import clock
from runs.models import Remark, Run
from runs.testing import Unanswered, go_on
from tests.runs.states import Log

LONG = "all of it, word for word; " * 2_000


@tool(kind="write", limit=timedelta(seconds=5))
def pay_back(arguments: dict[str, Any], result: str) -> str:
    return f"paid back {arguments['amount']}"


@tool(kind="write", limit=timedelta(seconds=5), compensate=pay_back)
def pay(amount: int) -> str:
    return f"paid {amount}"


@tool
def read(about: str) -> str:
    return f"{about}: {LONG}"


leaf = Graph("storied-leaf", state=Log, operators="ops", viewers="pm")


@leaf.node
def grow(run, state):
    state.log.append(run.once("grown", lambda: "a leaf"))


story = Graph("storied", state=Log, operators="ops", viewers="pm", on_failure="compensate")


@story.node(then="spend")
def begin(run, state):
    state.log.append(str(run.wait_for("go")))
    state.log += [end.status for end in run.join(run.start(leaf, {"log": ["alone"]}, key="one"))]
    state.log += [end.status for end in run.map(leaf, [{"log": ["first"]}, {"log": ["second"]}])]


@story.node(then="look")
def spend(run, state):
    ask = Ask("Pay 30?", reviewers="pm", why="It is **owed**.")
    state.log.append(run.call(pay, amount=30, key="pay:{run_id}", approve=ask))


@story.node(then="close")
def look(run, state):
    state.log.append(run.call(read, about="the case"))
    run.spend(tokens=7, usd=0.5)


@story.node
def close(run, state):
    run.call(pay, amount=5, key="storied pays once")
    run.call(pay, amount=1, key="last:{run_id}", approve=Ask("And one more?", reviewers="pm"))


def told(by: User) -> Run:
    """The whole story, which ends as rejected."""
    from approvals.models import Approval

    run = start(story, {"log": ["begun"]}, key="story:1", labels={"title": "A long story", "for": "ada"})
    run.signal("stop", {"why": "nobody reads it"}, key="unread", by="shop")

    came = {"go#1": {"payload": {"really": True}, "by": "shop"}}
    edited = {"verdict": "edit", "payload": {"amount": 20}, "reason": "only 20"}
    for said in (edited, {"verdict": "reject", "reason": "enough"}):
        with suppress(Unanswered):
            go_on(run, story, came)
        approval = Approval.objects.open().get(run=run)
        approval.comment(by, "Let me see")
        approval.decide(by=by, **said)
    go_on(run, story, came)
    entry = run.entries.get(key="pay:{run_id}")
    late = {"kind": "late_result", "worker": "w9", "fence": 1, "body": '"paid twice?"'}
    Remark.objects.create(run=run, entry=entry, at=clock.now(), **late)
    _the_newest_rows()
    return run


def _the_newest_rows() -> None:
    """Of another run: the newest row of a table is not moved."""
    run = start(leaf, {"log": ["comes after it"]})
    run.signal("hello", by="shop")
    go_on(run, leaf)
    Remark.objects.create(run=run, kind="late_result", worker="w9", fence=1, body="", at=clock.now())
