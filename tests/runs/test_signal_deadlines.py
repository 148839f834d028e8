"""Signals that do not come in time, and those that come beside questions, timers and calls."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import Ask, Graph, Retry, TimedOut, Timer, Wait, start
from runs.engine.verify import first_bad_row
from runs.models import Run, Signal
from tests.runs.driving import answer, claim, drive, kinds, pass_time, registered, undo
from tests.runs.payments import HOUR, look, timed
from tests.runs.states import Log, log_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payments_known")]


# -- when it does not come --------------------------------------------------------------------------------------


def test_a_wait_that_times_out_raises_what_the_author_can_catch():
    run = start(timed, {})
    drive(run)
    opened = run.entries.get().opened_at
    assert run.wake_at == opened + HOUR
    pass_time(3600.1)
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["paid: No signal “paid” came in time."])
    entry = run.entries.get()
    assert (entry.status, entry.error_kind, entry.answered_by) == ("failed", "expired", "the deadline")
    assert first_bad_row(run) is None


def test_a_wait_that_nobody_catches_ends_the_run_as_expired_and_not_as_a_dead_letter():
    graph = Graph("signal-uncaught", state=Log)

    @graph.node(retry=Retry(attempts=5))
    def wait(run, state):
        run.wait_for("paid", timeout=HOUR)

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(3601)
        drive(run)
    assert (run.status, run.error_kind, run.error) == ("failed", "expired", "No signal “paid” came in time.")
    assert not Run.objects.dead_letters().exists()


def test_a_timed_out_wait_reads_nothing_and_a_late_signal_stays_for_the_next_wait():
    """Also where no worker has looked since the deadline: the clock judges, not the worker."""
    graph = Graph("signal-late", state=Log)

    @graph.node(then="again")
    def first(run, state):
        try:
            run.wait_for("paid", timeout=HOUR)
        except TimedOut:
            state.log.append("timed out")

    @graph.node
    def again(run, state):
        state.log.append(run.wait_for("paid"))

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(3601)
        run.signal("paid", "late")
        drive(run)
    assert (run.status, log_of(run)) == ("completed", ["timed out", "late"])
    assert Signal.objects.get().consumed_by.step == 2


def test_a_signal_in_time_counts_though_the_worker_looks_after_the_deadline():
    run = start(timed, {})
    drive(run)
    pass_time(3599)
    run.signal("paid", "in time")
    pass_time(100)
    drive(run)
    assert log_of(run) == ["in time"]


def test_without_time_a_wait_only_looks():
    graph = Graph("signal-poll", state=Log)

    @graph.node
    def poll(run, state):
        state.log.append(run.wait_for("paid", timeout=timedelta()))
        try:
            run.wait_for("paid", timeout=timedelta())
        except TimedOut:
            state.log.append("nothing")

    with registered(graph):
        run = start(graph, {})
        run.signal("paid", "there")
        drive(run)
    assert (run.status, log_of(run), kinds(run)[-1]) == ("completed", ["there", "nothing"], "complete")


mixed = Graph("signal-mixed", state=Log)


@mixed.node
def wait_for_all(run, state):
    said, left, right, looked, _ = run.gather(
        Ask("Well?", name="well", due=3 * HOUR),
        Wait("part"),
        Wait("part", timeout=2 * HOUR),
        look.bind(word="x"),
        Timer(HOUR / 2),
    )
    state.log += [said.verdict, left, right, looked]


# -- several at once --------------------------------------------------------------------------------------------


def test_a_gather_over_every_kind_of_wait_goes_on_when_the_last_one_is_over():
    """S4 with other waits: each answer reaches its own, in whatever order they come."""
    with registered(mixed):
        run = start(mixed, {})
        drive(run)
        opened = run.entries.get(key="sleep#1")
        assert run.wake_at == opened.due_at
        run.signal("part", "one")
        assert claim(run) is None
        run.refresh_from_db()
        assert run.wake_at == opened.due_at, "the next look is at the earliest time"
        answer(run, "well")
        pass_time(1800.1)
        assert claim(run) is None
        run.refresh_from_db()
        assert run.wake_at == run.entries.get(key="part#2").due_at
        run.signal("part", "two")
        drive(run)
    assert (run.status, log_of(run)) == ("completed", ["approve", "one", "two", "x"])
    assert kinds(run) == ["start", "claim", "wait", "wake", "complete"], "called twice, whatever came when"
    assert first_bad_row(run) is None


def test_in_a_gather_a_wait_that_timed_out_is_raised_when_nothing_waits_any_more():
    with registered(mixed):
        run = start(mixed, {})
        drive(run)
        run.signal("part", "one")
        pass_time(7201)
        assert claim(run) is None, "the question is still open"
        answer(run, "well")
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")


def test_an_undo_holds_though_a_signal_wakes_the_run_inside_its_window():
    """S13 with a signal as the other wait."""
    with registered(mixed):
        run = start(mixed, {})
        drive(run)
        pass_time(1801)
        decided = answer(run, "well", undo=8)
        pass_time(1)
        run.signal("part", "one")
        run.signal("part", "two")
        assert claim(run) is None
        run.refresh_from_db()
        decided.refresh_from_db()
        assert run.wake_at == decided.effective_at
        pass_time(4)
        assert undo(run, decided) == "open"
        pass_time(100)
        assert claim(run) is None
        answer(run, "well", "reject", undo=8)
        pass_time(8.1)
        drive(run)
    assert (run.status, log_of(run)) == ("completed", ["reject", "one", "two", "x"])


def test_a_persons_undo_holds_though_a_signal_wakes_the_run_inside_its_window(ada):
    """S13 as people do it: decided at 0 s, a signal at 1 s, undone at 5 s."""
    from approvals.models import Approval

    graph = Graph("signal-beside-approval", state=Log)

    @graph.node
    def wait(run, state):
        said, part = run.gather(Ask("Well?", name="well", reviewers="pm"), Wait("part"))
        state.log += [said.verdict, part]

    with registered(graph):
        run = start(graph, {})
        drive(run)
        Approval.objects.get(run=run).decide(by=ada, verdict="approve")
        pass_time(1)
        run.signal("part", "one")
        assert claim(run) is None
        pass_time(4)
        Approval.objects.get(run=run).undo(ada)
        pass_time(60)
        assert claim(run) is None
        Approval.objects.get(run=run).decide(by=ada, verdict="reject", reason="on second thought")
        pass_time(9)
        drive(run)
    assert (run.status, log_of(run)) == ("completed", ["reject", "one"])
    assert first_bad_row(run) is None
