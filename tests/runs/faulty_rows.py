"""Rows for faulty_verbs.py to begin with: runs that are claimed, parked, lost or in doubt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from runs import END, Ask, Graph, Retry, Timer, Wait, registry, start, tool
from runs.conf import conf
from runs.core import ledger
from runs.core.ledger import Entry
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.lease import Lease
from runs.engine.ledger import RowLedger
from runs.models import LedgerEntry, Run
from runs.testing import Unanswered, go_on
from runs.testing.driving import answer
from tests.runs import versioned
from tests.runs.failing import failing


class Log(BaseModel):
    log: list[str] = []


@tool(kind="write", limit=timedelta(seconds=5))
def post(text: str) -> str:
    return f"posted {text}"


@tool
def look(text: str) -> str:
    return text


plain = Graph("fault-plain", state=Log, operators="ops")


@plain.node(then="second", retry=Retry(attempts=2, first=10))
def first(run, state):
    state.log.append("first")


@plain.node
def second(run, state):
    state.log.append("second")


asking = Graph("fault-asking", state=Log, operators="ops")


@asking.node(then="after")
def ask(run, state):
    others = {"escalate_to": "ops", "escalate_after": timedelta(hours=1)}
    one = Ask("One?", name="one", reviewers="pm", due=timedelta(hours=2), **others)
    answers = run.gather(one, Ask("Two?", name="two", due=timedelta(hours=3), on_expiry="rejected"))
    state.log += [answer.verdict for answer in answers]


@asking.node
def after(run, state):
    state.log.append("after")


sending = Graph("fault-sending", state=Log, operators="ops")


@sending.node
def send(run, state):
    state.log.append(run.call(post, text="a"))


waiting = Graph("fault-waiting", state=Log, operators="ops")


@waiting.node
def wait(run, state):
    run.gather(Wait("go", timeout=timedelta(hours=9)), Timer(timedelta(hours=2)))
    state.log.append("went")


few = Graph("fault-few", state=Log)


@few.node
def end(run, state):
    state.log.append("ended")


lone = Graph("fault-lone", state=Log, operators="ops")


@lone.node(then=("go", END))
def go(run, state):
    state.log += [end.status for end in run.join(run.start(few, {}))]
    return END


many = Graph("fault-many", state=Log, operators="ops")


@many.node
def go_for_each(run, state):
    state.log += [end.status for end in run.map(few, [{}, {"log": ["second"]}], at_once=1)]


GRAPHS = (plain, asking, sending, waiting, versioned.second, failing, few, lone, many)


def script(entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any]:
    """What is said to anything: an effect in doubt did not happen, the rest is fine."""
    if request.get("settles"):
        return {"verdict": "respond", "payload": {"outcome": "not_happened", "result": None}}
    return {"verdict": "approve"}


def claimed(graph: Graph = plain, worker: str = "w1") -> Drive:
    return claim(start(graph, {}), worker)


def claim(run: Run, worker: str = "w1") -> Drive | None:
    taken = Claimer(worker, list(GRAPHS)).claim(alone=True, only=run.pk)
    return None if taken is None else Drive(*taken)


def lost(graph: Graph = sending) -> Run:
    """Its worker has committed an intent, and is gone."""
    drive = claimed(graph)
    RowLedger(drive.lease, drive.rows).open(effect(drive.lease), tried=post.limit)
    pass_lease()
    return Run.objects.get(pk=drive.lease.run_id)


def parked(graph: Graph = asking) -> Run:
    """A run that waits for both its questions, or both its other waits."""
    run = start(graph, {})
    claim(run).run()
    run.refresh_from_db()
    return run


def in_doubt() -> Run:
    """People are asked what became of its write."""
    run = lost()
    try:
        go_on(run, sending)
    except Unanswered:
        run.refresh_from_db()
    return run


def reply(run: Run, key: str, undo: float = 0.0, **said: Any) -> None:
    """`undo` seconds before it becomes effective; the kit's own answers take the setting's."""
    entry = LedgerEntry.objects.get(run=run, key=key)
    answer(run, entry, entry.request_value(), {"verdict": "approve", **said})
    LedgerEntry.objects.filter(pk=entry.pk).update(effective_at=clock.now() + timedelta(seconds=undo))
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())


def pass_lease() -> None:
    clock.AHEAD += timedelta(seconds=conf.lease_seconds + 1)


def effect(lease: Lease) -> Entry:
    key = f"post:{post.bind(text='a').digest[:8]}#1"
    return ledger.effect(post.bind(text="a"), key, f"{lease.run_id}:1:{key}")


def registered() -> None:
    for graph in GRAPHS:
        registry.add(graph)


def forgotten() -> None:
    for graph in GRAPHS:
        registry.remove(graph)
