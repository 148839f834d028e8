"""Waits under the kit: scripted signals, a clock that jumps, a kill at every boundary, and rules that are left out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import Graph, TimedOut, Timer, Wait, start, tool
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.models import LedgerEntry, Run, Signal
from runs.models.signal import SignalQuerySet
from runs.testing import CrashFound, Unanswered, crash_everywhere, drive, go_on, moved_clock
from runs.testing.driving import work
from tests.amounts import KILLS
from tests.runs.driving import kills_of
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@tool(kind="write")
def ship(parcel: str) -> str:
    return f"shipped {parcel}"


order = Graph("crash-order", state=Log, operators="ops")


@order.node
def follow(run, state):
    state.log.append(run.wait_for("paid")["by"])
    state.log.append(run.call(ship, key="ship:{run_id}", parcel="A"))
    state.log.append(run.gather(Wait("arrived"), Timer(2 * HOUR))[0])
    try:
        run.wait_for("returned", timeout=HOUR)
    except TimedOut:
        state.log.append("kept")


ANSWERS = {
    "paid#1": {"payload": {"by": "ada"}},
    "arrived#1": lambda request: {"payload": f"{request['signal']} today", "by": "the carrier"},
}
END = ["ada", "shipped A", "arrived today", "kept"]


def test_the_kit_sends_scripted_signals_and_lets_timers_pass():
    with moved_clock() as moved:
        began = moved.now()
        run = drive(order, {}, ANSWERS)
        assert 3 * HOUR < moved.now() - began < 3 * HOUR + timedelta(minutes=1)
    assert (run.status, run.state_at()["log"]) == ("completed", END)
    assert list(run.signals.order_by("pk").values_list("name", "by")) == [
        ("paid", "someone"),
        ("arrived", "the carrier"),
    ]


def test_no_kill_loses_a_signal_or_reads_it_twice_or_sleeps_again():
    """E15, S3, S7 with waits."""
    report = crash_everywhere(order, {}, ANSWERS, kills=KILLS)
    assert (report.status, report.effects) == ("completed", {"ship": 1})
    for kind in ("signal", "timer"):
        assert f"look at {kind}" in report.boundaries and f"looked at {kind}" in report.boundaries
    assert "signalled" in report.boundaries
    assert report.kills == kills_of(report)


def test_a_wait_without_an_answer_or_a_timeout_says_what_is_missing():
    with pytest.raises(Unanswered, match=r"for 'paid#1': give answers=\{key: \{'payload': ...\}\}"):
        drive(order, {})


def test_a_signal_can_be_there_before_the_kit_goes_on():
    with moved_clock():
        run = start(order, {})
        run.signal("arrived", "early")
        run = go_on(run, order, ANSWERS)
    assert run.state_at()["log"][2] == "early"
    assert not Signal.objects.unread().exists(), "the scripted one was not needed"


def test_a_signal_that_is_taken_before_its_answer_is_written_is_found_to_be_lost(monkeypatch):
    """Proof that a kill would show it, if consuming and answering were two commits."""
    from runs.engine import ledger as engine_ledger
    from runs.engine.boundaries import boundary

    self_told = Graph("crash-self-told", state=Log)

    @self_told.node(then="read")
    def tell(run, state):
        run.once("sent", lambda: Run.objects.get(pk=run.id).signal("part", "one", key="k").name)

    @self_told.node
    def read(run, state):
        state.log.append(run.wait_for("part", timeout=HOUR))

    assert drive(self_told, {}).status == "completed"
    look = engine_ledger.look_at_wait

    def torn(lease, entry, until):
        row, came = look(lease, entry, until), Signal.objects.unread().filter(run=lease.run_id).first()
        if row is not None and row.status == "open" and came is not None:
            Signal.objects.filter(pk=came.pk).update(consumed_by=row)
            boundary("taken")
            at = dict.fromkeys(("answered_at", "effective_at", "taken_at"), lease.now())
            LedgerEntry.objects.filter(pk=row.pk).update(status="done", result=came.payload, **at)
            row.refresh_from_db()
        return row

    monkeypatch.setattr(SignalQuerySet, "for_wait", lambda *of: None)  # the look itself takes none
    monkeypatch.setattr(engine_ledger, "look_at_wait", torn)
    with pytest.raises(CrashFound, match="'taken'.*: status is 'failed', unharmed it is 'completed'"):
        crash_everywhere(self_told, {})


def test_a_wait_that_is_looked_at_without_its_deadline_is_found_to_read_what_came_too_late(monkeypatch):
    """Proof that the deadline is part of the look."""
    late = Graph("crash-late", state=Log)

    @late.node
    def wait(run, state):
        state.log.append(run.wait_for("part", timeout=HOUR))

    def sent_late():
        with moved_clock() as moved:
            run = start(late, {})
            claimed = Claimer("kit", [late]).claim(alone=True, only=run.pk)
            work(Drive(*claimed), moved)
            moved.move(HOUR)
            run.signal("part", "late")
            return go_on(run, late)

    assert sent_late().error_kind == "expired"
    for_wait = SignalQuerySet.for_wait
    monkeypatch.setattr(
        SignalQuerySet, "for_wait", lambda signals, run, name, before: for_wait(signals, run, name, None)
    )
    assert sent_late().status == "completed"
