"""Timers: never early by the database's clock, moved by nobody, and over where their moment has passed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from runs import Graph, Retry, TimedOut, Timer, Transient, Wait, start
from runs.engine import clock, sql
from runs.engine.verify import first_bad_row
from tests.runs.driving import claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.states import Log, log_of

pytestmark = pytest.mark.django_db(transaction=True)

nap = Graph("timer-nap", state=Log)


@nap.node
def sleep_two_seconds(run, state):
    run.sleep(timedelta(seconds=2))
    state.log.append("awake")


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(nap):
        yield


def test_a_timer_parks_the_run_until_its_moment_and_is_never_early():
    run = start(nap, {})
    drive(run)
    entry = run.entries.get()
    assert (run.status, entry.key, entry.kind, entry.name) == ("waiting", "sleep#1", "timer", "sleep")
    assert run.wake_at == entry.due_at == entry.opened_at + timedelta(seconds=2)
    pass_time(1)
    assert claim(run) is None
    pass_time(1.1)
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["awake"])
    entry.refresh_from_db()
    assert (entry.status, entry.answered_by) == ("done", "the clock")
    assert entry.answered_at >= entry.due_at
    assert kinds(run) == ["start", "claim", "wait", "wake", "complete"]
    assert first_bad_row(run) is None


def test_a_run_is_not_even_taken_before_its_moment():
    """Looked at a little earlier and a little later, over and over; however slow the machine is."""
    for early in (0.3, 0.1, 0.03, 0.01, 0.003, 0.0):
        run = start(nap, {})
        drive(run)
        pass_time((run.wake_at - clock.now()).total_seconds() - early)
        claim(run)
        taken = run.checkpoints.filter(kind="claim").order_by("seq")[1:]
        assert all(one.at >= run.wake_at for one in taken), early


def test_a_run_that_is_looked_at_too_early_sleeps_on_to_the_same_moment():
    """P4: whatever wakes it, the clock judges."""
    run = start(nap, {})
    drive(run)
    due_at = run.wake_at
    run.signal("nobody waits for this")
    assert claim(run) is None
    run.refresh_from_db()
    assert (run.status, run.wake_at) == ("waiting", due_at)


def test_a_heartbeat_that_lands_after_the_commit_of_a_timer_does_not_move_it():
    """E19"""
    run = start(nap, {})
    held = claim(run)
    held.run()
    run.refresh_from_db()
    due_at = run.wake_at
    late = clock.now() + timedelta(seconds=600)
    assert sql.heartbeat("w1", [(run.pk, held.lease.fence)], late) == set()
    run.refresh_from_db()
    assert run.wake_at == due_at
    pass_time(2.1)
    drive(run)
    assert run.status == "completed"


def test_a_worker_that_dies_after_it_opened_a_timer_does_not_begin_it_anew():
    run = start(nap, {})
    held = claim(run)
    held.lease.park = lambda keys, wake_at: None  # it dies here
    held.run()
    due_at = run.entries.get().due_at
    pass_lease()
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["awake"]), "the lease took longer than the timer"
    assert run.entries.get().due_at == due_at


@pytest.mark.parametrize("ago", [timedelta(), timedelta(days=1)])
def test_a_moment_that_has_passed_is_no_wait(ago):
    graph = Graph("timer-past", state=Log)

    @graph.node
    def go(run, state):
        run.sleep_until(clock.now() - ago)
        run.sleep(-ago)
        state.log.append("gone")

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert (run.status, kinds(run)) == ("completed", ["start", "claim", "complete"])
    assert [entry.status for entry in run.entries.all()] == ["done", "done"]


def test_a_moment_in_any_zone_is_that_moment():
    moment = (clock.now() + timedelta(hours=1)).astimezone(timezone(timedelta(hours=9)))
    graph = Graph("timer-zone", state=Log)

    @graph.node
    def go(run, state):
        run.sleep_until(moment)

    with registered(graph):
        run = start(graph, {})
        drive(run)
        assert run.wake_at == moment
        pass_time(3600.1)
        drive(run)
    assert run.status == "completed"


def test_a_moment_made_anew_in_each_execution_is_the_first_one():
    """The recorded request wins: a node that asks for the time itself would otherwise sleep for ever."""
    graph = Graph("timer-moving", state=Log)

    @graph.node
    def go(run, state):
        run.sleep_until(clock.now() + timedelta(hours=1))

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(3601)
        drive(run)
    assert run.status == "completed"


def test_several_sleeps_follow_each_other():
    graph = Graph("timer-several", state=Log)

    @graph.node
    def go(run, state):
        for _ in range(3):
            run.sleep(timedelta(hours=1))

    with registered(graph):
        run = start(graph, {})
        for _ in range(3):
            drive(run)
            assert run.status == "waiting"
            pass_time(3601)
        drive(run)
    assert run.status == "completed"
    assert [entry.key for entry in run.entries.order_by("id")] == ["sleep#1", "sleep#2", "sleep#3"]
    opened = [entry.opened_at for entry in run.entries.order_by("id")]
    assert all(later - sooner > timedelta(hours=1) for sooner, later in zip(opened, opened[1:], strict=False))


def test_a_timer_that_is_over_before_a_retry_is_not_slept_again():
    bodies = []
    graph = Graph("timer-retry", state=Log)

    @graph.node(retry=Retry(attempts=2, first=10, jitter=0))
    def go(run, state):
        bodies.append(1)
        run.sleep(timedelta(hours=1))
        if len(bodies) == 2:
            raise Transient("not now")

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(3601)
        drive(run)
        assert run.status == "retrying"
        pass_time(11)
        drive(run)
    assert (run.status, len(bodies)) == ("completed", 3)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda run: run.sleep(5), "5 is no time; give a timedelta"),
        (lambda run: run.sleep_until(datetime(2030, 1, 1)), "has no zone"),  # noqa: DTZ001 - that is the mistake
        (lambda run: run.sleep(timedelta.max), "beyond the end of the calendar"),
        (lambda run: run.sleep_until(datetime.max.replace(tzinfo=UTC)), "at the end of the calendar"),
        (lambda run: run.wait_for("paid", timeout=5), "the timeout of the wait for 'paid': 5 is no time"),
        (lambda run: run.wait_for(" "), "a name has 1 to 120 characters"),
        (lambda run: run.gather("paid"), "'paid' is none of"),
    ],
)
def test_what_is_no_wait_fails_the_run_with_what_to_do(ask, said):
    graph = Graph("timer-wrong", state=Log)

    @graph.node
    def go(run, state):
        ask(run)

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert said in run.error
    assert not run.entries.exists()


def test_an_async_node_waits_in_the_same_words():
    graph = Graph("timer-async", state=Log)

    @graph.node
    async def go(run, state):
        await run.sleep(timedelta(hours=1))
        state.log.append(await run.wait_for("go"))
        try:
            await run.gather(
                Wait("never", timeout=timedelta(hours=1)), Timer(datetime(2000, 1, 1, tzinfo=UTC))
            )
        except TimedOut as late:
            state.log.append(late.name)

    def work(run):
        claim(run).run()
        run.refresh_from_db()

    with registered(graph):
        run = start(graph, {})
        for _ in range(3):
            work(run)
            if not run.signals.exists():
                run.signal("go", "went")
            pass_time(3601)
    assert (run.status, log_of(run)) == ("completed", ["went", "never"])
