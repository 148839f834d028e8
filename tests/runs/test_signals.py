"""Signals: a run's mailbox, and the waits that read it; early, late and doubled."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runs import END, Ask, Graph, Retry, Transient, Wait, start
from runs.core.outcomes import Lost, Waits
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Remark, Run, Signal
from tests.at_once import at_once
from tests.runs.driving import answer, claim, drive, kinds, pass_time, registered
from tests.runs.payments import HOUR, look, paid
from tests.runs.states import Log, log_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payments_known")]


# -- when it comes ----------------------------------------------------------------------------------------------


def test_a_signal_that_came_before_the_wait_is_returned_at_once():
    """S1: no park, and nothing is called twice."""
    run = start(paid, {})
    run.signal("paid", 7, by="the bank")
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["7"])
    assert kinds(run) == ["start", "claim", "complete"]
    entry = run.entries.get()
    assert (entry.key, entry.kind, entry.status, entry.answered_by) == (
        "paid#1",
        "signal",
        "done",
        "the bank",
    )
    assert entry.signal == Signal.objects.get() and entry.taken_at is not None
    assert first_bad_row(run) is None


def test_a_signal_wakes_the_run_that_waits_for_it():
    run = start(paid, {})
    drive(run)
    assert (run.status, run.wake_at) == ("waiting", None)
    signal = run.signal("paid", {"amount": Decimal("1.10")})
    run.refresh_from_db()
    assert (run.wake_at, run.answers) == (signal.at, 1)
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["{'amount': Decimal('1.10')}"])
    assert kinds(run) == ["start", "claim", "wait", "wake", "complete"]
    assert first_bad_row(run) is None


def test_a_signal_of_another_name_wakes_the_run_which_parks_again_without_a_word():
    run = start(paid, {})
    drive(run)
    before = Checkpoint.objects.count(), run.fence
    run.signal("shipped")
    assert claim(run) is None
    run.refresh_from_db()
    assert (run.status, run.wake_at) == ("waiting", None)
    assert (Checkpoint.objects.count(), run.fence) == before
    assert Signal.objects.unread().count() == 1


def test_the_oldest_unread_signal_of_a_name_is_read_first():
    graph = Graph("signal-rounds", state=Log)

    @graph.node(then=("collect", END))
    def collect(run, state):
        state.log.append(run.wait_for("part"))
        return END if len(state.log) == 4 else "collect"

    with registered(graph):
        run = start(graph, {})
        for part in "abcd":
            run.signal("part", part)
        drive(run)
    assert log_of(run) == ["a", "b", "c", "d"]
    read = Signal.objects.order_by("pk").values_list("payload", "consumed_by__step")
    assert list(read) == [('"a"', 1), ('"b"', 2), ('"c"', 3), ('"d"', 4)]


def test_five_signals_that_arrive_while_a_node_runs_are_read_after_it():
    """E11: the node runs once, and its lease is as it was."""
    bodies, leases = [], set()
    graph = Graph("signal-five", state=Log)

    @graph.node(then="collect")
    def busy(run, state):
        bodies.append("busy")
        row = Run.objects.get(pk=run.id)
        leases.add(row.wake_at)
        for n in range(5):
            row.signal("part", n)
        row.refresh_from_db()
        leases.add(row.wake_at)

    @graph.node
    def collect(run, state):
        bodies.append("collect")
        state.log += [str(run.wait_for("part")) for _ in range(5)]

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert (run.status, log_of(run), run.answers) == ("completed", ["0", "1", "2", "3", "4"], 5)
    assert (bodies, len(leases)) == (["busy", "collect"], 1)


def test_signals_to_a_running_and_to_a_retrying_run_leave_its_lease_and_its_back_off_alone():
    """E17: one every 100 ms, by a moved clock, while the node runs and while it waits for its next try.

    Neither its lease nor its back-off is changed; they are read by the try that follows, at its own time.
    """
    bodies, lease_ends = [], set()
    graph = Graph("signal-retrying", state=Log)

    @graph.node(retry=Retry(attempts=2, first=300, jitter=0))
    def shaky(run, state):
        bodies.append(1)
        if len(bodies) == 1:
            row = Run.objects.get(pk=run.id)
            for n in range(10):
                pass_time(0.1)
                row.signal("go", f"running {n}")
                row.refresh_from_db()
                lease_ends.add(row.wake_at)
            raise Transient("not now")
        state.log += [run.wait_for("go") for _ in range(50)]

    with registered(graph):
        run = start(graph, {})
        drive(run)
        assert run.status == "retrying"
        assert (len(bodies), len(lease_ends)) == (1, 1)
        back_off = run.wake_at
        assert 300 <= (back_off - run.checkpoints.latest("seq").at).total_seconds() < 360
        for n in range(40):
            pass_time(0.1)
            run.signal("go", f"retrying {n}")
            assert n % 10 or claim(run) is None
        run.refresh_from_db()
        assert run.wake_at == back_off
        pass_time(361)
        drive(run)
    sent = [f"running {n}" for n in range(10)] + [f"retrying {n}" for n in range(40)]
    assert (run.status, log_of(run), len(bodies)) == ("completed", sent, 2)


def test_a_wait_that_was_open_before_a_retry_reads_what_came_meanwhile():
    bodies = []
    graph = Graph("signal-open-at-retry", state=Log)

    @graph.node(retry=Retry(attempts=3, first=60, jitter=0))
    def shaky(run, state):
        bodies.append(1)
        try:
            state.log.append(run.gather(Wait("go"), look.bind(word="x"))[0])
        finally:
            if len(bodies) == 1:
                raise Transient("not now")

    with registered(graph):
        run = start(graph, {})
        held = claim(run)
        held.run()
        run.refresh_from_db()
        assert run.status == "waiting", "a wait goes before what the node raises after it"
        Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
        LedgerEntry.objects.filter(run=run).update(awaited=False)
        held = claim(run)
        Run.objects.get(pk=run.pk).signal("go", "now")
        held.run()
        run.refresh_from_db()
    assert (run.status, log_of(run)) == ("completed", ["now"])


def test_a_signal_between_the_last_look_and_the_wait_makes_the_run_due_at_once():
    """E18 with signals."""
    for _ in range(10):
        run = start(paid, {})
        held = claim(run)
        park = held.lease.park

        def late(keys, wake_at, run=run, park=park):
            run.signal("paid", "just then")
            park(keys, wake_at)

        held.lease.park = late
        assert isinstance(held.run(), Waits)
        run.refresh_from_db()
        assert run.wake_at is not None
        drive(run)
        assert (run.status, log_of(run)) == ("completed", ["just then"])


def test_signals_sent_at_the_same_moment_are_each_read_once():
    graph = Graph("signal-crowd", state=Log)

    @graph.node
    def collect(run, state):
        state.log += run.gather(*[Wait("part") for _ in range(4)])

    with registered(graph):
        for _ in range(5):
            run = start(graph, {})
            senders = [
                lambda n=n, run=run: Run.objects.get(pk=run.pk).signal("part", f"{n}") for n in range(4)
            ]
            ends = at_once(*senders, lambda run=run: drive(Run.objects.get(pk=run.pk)))
            assert not [end for end in ends if isinstance(end, Exception)]
            drive(run)
            assert (run.status, sorted(log_of(run))) == ("completed", ["0", "1", "2", "3"])
            assert len({signal.consumed_by_id for signal in run.signals.all()}) == 4


# -- the worker -------------------------------------------------------------------------------------------------


def test_a_worker_that_lost_its_lease_reads_nothing():
    """P2"""
    run = start(paid, {})
    held = claim(run)
    run.signal("paid", 1)
    Run.objects.get(pk=run.pk).cancel("ada", "enough")
    assert isinstance(held.run(), Lost)
    assert Signal.objects.unread().count() == 1
    assert not run.entries.exists()


def test_a_wait_that_was_asked_for_in_other_words_keeps_its_first_deadline():
    """The recorded request wins, and the difference is a remark."""
    timeouts = [HOUR, 2 * HOUR]
    graph = Graph("signal-reworded", state=Log)

    @graph.node
    def wait(run, state):
        state.log.append(run.gather(Wait("paid", timeout=timeouts.pop(0)), Ask("Well?", name="well"))[0])

    with registered(graph):
        run = start(graph, {})
        drive(run)
        entry = run.entries.get(kind="signal")
        answer(run, "well")
        run.signal("paid", "yes")
        drive(run)
    assert run.status == "completed"
    assert run.entries.get(kind="signal").request == entry.request
    assert [remark.kind for remark in Remark.objects.filter(entry=entry)] == ["other_request"]


def test_a_key_that_was_something_else_before_is_refused():
    bodies = []
    graph = Graph("signal-other-kind", state=Log)

    @graph.node(retry=Retry(attempts=2, first=0))
    def wait(run, state):
        bodies.append(1)
        if len(bodies) == 1:
            run.once("paid", lambda: 1)
            raise Transient("not now")
        run.wait_for("paid")

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(1)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "'paid#1' is a value of this step" in run.error
