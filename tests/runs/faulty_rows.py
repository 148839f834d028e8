"""Rows for faulty_verbs.py to begin with: runs that are claimed, parked, lost or in doubt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from runs import Ask, Graph, Retry, registry, start, tool
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
    one = Ask("One?", name="one", reviewers="pm", due=timedelta(hours=2))
    answers = run.gather(one, Ask("Two?", name="two", due=timedelta(hours=3), on_expiry="rejected"))
    state.log += [answer.verdict for answer in answers]


@asking.node
def after(run, state):
    state.log.append("after")


sending = Graph("fault-sending", state=Log, operators="ops")


@sending.node
def send(run, state):
    state.log.append(run.call(post, text="a"))


GRAPHS = (plain, asking, sending)


def script(entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any]:
    """What people say to anything: an effect in doubt did not happen, the rest is fine."""
    if request["settles"]:
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


def parked() -> Run:
    """A run that waits for both its questions."""
    run = start(asking, {})
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
