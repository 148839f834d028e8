"""Families under the kit: a kill at every boundary, of the parent and of each child, and rules that are left out."""

from __future__ import annotations

import pytest
from django.db import transaction

from runs import Graph, start, tool
from runs.engine import children, telling
from runs.engine.boundaries import boundary
from runs.engine.ledger import RowLedger
from runs.models import FanOut, Run
from runs.testing import CrashFound, Unanswered, crash_everywhere, drive, go_on
from tests.amounts import KILLS
from tests.runs.driving import kills_of, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@tool(kind="write")
def ship(parcel: str) -> str:
    return f"shipped {parcel}"


parcel = Graph("crash-parcel", operators="ops")


@parcel.node
def send(run, state):
    if state["parcel"] == "heavy":
        state["sent"] = run.interrupt("Heavy. Still?", name="heavy").verdict
    else:
        state["sent"] = run.call(ship, parcel=state["parcel"]) if state["parcel"] == "A" else "kept"


order = Graph("crash-family", state=Log)


@order.node
def ship_all(run, state):
    one = run.start(parcel, {"parcel": "heavy"})
    many = run.map(parcel, [{"parcel": "A"}, {"parcel": "B"}], at_once=1)
    state.log += [end.result["sent"] for end in [*many, *run.join(one)]]


ANSWERS = {"heavy": {"verdict": "approve"}}


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(parcel):
        yield


def test_the_kit_drives_a_family_with_the_answers_of_all_its_members():
    run = drive(order, {}, ANSWERS)
    assert (run.status, run.state_at()["log"]) == (
        "completed",
        ["shipped A", "kept", "approve"],
    )
    with pytest.raises(Unanswered, match="for 'heavy': give answers"):
        drive(order, {})


def test_no_kill_loses_a_childs_end_or_starts_a_child_twice():
    """R10, S2, S8, E15 with children: of the parent's process or a child's, at every boundary."""
    report = crash_everywhere(order, {}, ANSWERS, kills=KILLS)
    assert (report.status, report.effects) == ("completed", {"ship": 1})
    for act in ("start", "fan out", "spread"):
        assert f"{act} child" in report.boundaries and f"{act} child done" in report.boundaries
    assert report.kills == kills_of(report)


def test_a_child_that_is_not_committed_with_its_entry_is_found_to_be_started_twice(monkeypatch):
    """Proof that a kill would show it, if a child and its entry were two commits."""
    lone = Graph("crash-lone", state=Log)

    @lone.node
    def go(run, state):
        state.log += [end.result["sent"] for end in run.join(run.start(parcel, {"parcel": "A"}))]

    def torn(self, entry, graph, tree):
        entry.step = self.step
        with transaction.atomic():
            run, now = Run.objects.lock(self.lease.run_id)
            [child] = children._begin(run, graph, [tree], now, detached=False)
        boundary("born")
        return self._know(self._insert(run, entry, now, child=child))

    assert drive(lone, {}).status == "completed"
    monkeypatch.setattr(RowLedger, "start", torn)
    with pytest.raises(CrashFound, match="'born'.*the writes are"):
        crash_everywhere(lone, {})


def test_ends_that_do_not_wake_the_parent_are_found(monkeypatch):
    """Proof that a child's end must count as an answer."""
    monkeypatch.setattr(telling, "wake", lambda run, at, answers: None)
    with pytest.raises(Unanswered, match="its wake-up was lost"):
        drive(order, {}, ANSWERS)


def test_a_count_that_is_kept_apart_from_the_end_is_found_to_be_lost(monkeypatch):
    """Proof that the counters belong to the transaction of the end."""
    monkeypatch.setattr(FanOut, "count", lambda fan_out, child: None)
    run = start(order, {})
    with pytest.raises(Unanswered):
        go_on(run, order, ANSWERS)
    assert Run.objects.get(pk=run.pk).status == "waiting"
