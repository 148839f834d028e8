"""Signals: a run's mailbox, and the waits that read it; early, late, doubled and never read."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, transaction

from runs import END, Ask, Graph, Retry, TimedOut, Timer, Transient, Wait, start, tool
from runs.core.outcomes import Lost, Waits
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import Checkpoint, LedgerEntry, Remark, Run, Signal
from tests.at_once import at_once
from tests.runs.driving import answer, claim, drive, kinds, pass_time, registered, undo
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)

paid = Graph("signal-paid", state=Log)


@paid.node
def wait_for_payment(run, state):
    state.log.append(str(run.wait_for("paid")))


timed = Graph("signal-timed", state=Log)


@timed.node
def wait_an_hour(run, state):
    try:
        state.log.append(str(run.wait_for("paid", timeout=HOUR)))
    except TimedOut as late:
        state.log.append(f"{late.name}: {late}")


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(paid, timed):
        yield


def log_of(run: Run) -> list[str]:
    return run.state_at()["log"]


# -- when it comes --------------------------------------------------------------------------------------------


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


def test_signals_to_a_retrying_run_leave_its_back_off_alone():
    """E17: they are read by the try that follows, at its own time."""
    bodies = []
    graph = Graph("signal-retrying", state=Log)

    @graph.node(retry=Retry(attempts=2, first=60, jitter=0))
    def shaky(run, state):
        bodies.append(1)
        if len(bodies) == 1:
            raise Transient("not now")
        state.log += [run.wait_for("go"), run.wait_for("go")]

    with registered(graph):
        run = start(graph, {})
        drive(run)
        assert run.status == "retrying"
        back_off = run.wake_at
        for n in range(5):
            run.signal("go", str(n))
        run.refresh_from_db()
        assert run.wake_at == back_off
        assert claim(run) is None
        pass_time(61)
        drive(run)
    assert (run.status, log_of(run), len(bodies)) == ("completed", ["0", "1"], 2)


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


@tool
def look(word: str) -> str:
    return word


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


# -- when it does not come ------------------------------------------------------------------------------------


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


# -- several at once ------------------------------------------------------------------------------------------

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


# -- what is refused ------------------------------------------------------------------------------------------


def test_the_same_key_is_accepted_once_and_says_the_same_each_time():
    run = start(paid, {})
    first = run.signal("paid", {"n": 1}, key="evt_1", by="the bank")
    run.refresh_from_db()
    counted = run.answers
    assert run.signal("paid", {"n": 1}, key="evt_1", by="the bank again") == first
    for name, payload in (("paid", {"n": 2}), ("refunded", {"n": 1})):
        with pytest.raises(Conflict, match="evt_1"):
            run.signal(name, payload, key="evt_1")
    run.refresh_from_db()
    assert (Signal.objects.count(), run.answers) == (1, counted)
    drive(run)
    assert run.status == "completed"
    assert run.signal("paid", {"n": 1}, key="evt_1") == first, "also after its end"


def test_the_same_key_from_eight_senders_at_once_is_one_signal():
    run = start(paid, {})
    ends = at_once(*[lambda: Run.objects.get(pk=run.pk).signal("paid", 1, key="evt")] * 8)
    assert {end.pk for end in ends} == {Signal.objects.get().pk}
    run.refresh_from_db()
    assert run.answers == 1


def test_a_run_that_ends_keeps_its_unread_signals_and_takes_no_more():
    """S10"""
    run = start(paid, {})
    run.signal("paid", 1)
    run.signal("paid", 2)
    run.signal("shipped", 3)
    drive(run)
    assert run.status == "completed"
    assert list(Signal.objects.unread().order_by("pk").values_list("payload", flat=True)) == ["2", "3"]
    with pytest.raises(Conflict, match="completed; it takes no signals any more"):
        run.signal("paid", 4)
    assert Signal.objects.count() == 3


def test_a_cancelled_run_closes_its_waits_and_takes_no_more_signals():
    run = start(timed, {})
    drive(run)
    run.cancel("ada", "not needed")
    assert run.entries.get().status == "cancelled"
    with pytest.raises(Conflict, match="cancelled"):
        run.signal("paid")
    assert first_bad_row(run) is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"key": ""}, "key"),
        ({"key": " "}, "key"),
        ({"key": "x" * 201}, "key"),
        ({"payload": {"n": float("nan")}}, "$.n"),
        ({"payload": [object()]}, "$[0]"),
    ],
)
def test_what_cannot_be_stored_is_refused_naming_the_place(given, field):
    run = start(paid, {})
    with pytest.raises(Invalid) as refused:
        run.signal(**{"name": "paid"} | given)
    assert list(refused.value.fields) == [field]
    assert not Signal.objects.exists()


def test_a_payload_that_holds_a_secret_is_refused_naming_the_path(monkeypatch):
    from runs import secrets

    monkeypatch.setenv("DURABLEWEB_SECRET_BANK", "correct horse battery")
    secrets.forget()
    try:
        run = start(paid, {})
        with pytest.raises(Invalid) as refused:
            run.signal("paid", {"token": "correct horse battery"})
    finally:
        monkeypatch.undo()
        secrets.forget()
    assert list(refused.value.fields) == ["$.token"]
    assert "correct horse" not in str(refused.value)


def test_a_long_payload_is_kept_as_a_blob_and_read_whole():
    run = start(paid, {})
    run.signal("paid", "x" * 100_000)
    assert len(Signal.objects.get().payload) < 200
    drive(run)
    assert log_of(run) == ["x" * 100_000]


def test_the_database_refuses_to_change_a_signal_or_to_have_it_read_twice():
    run = start(paid, {})
    signal = run.signal("paid", 1)
    drive(run)
    for change in ({"payload": "2"}, {"consumed_by": None}, {"name": "other"}):
        with pytest.raises(DatabaseError, match="a signal is final"), transaction.atomic():
            Signal.objects.filter(pk=signal.pk).update(**change)


# -- the worker -----------------------------------------------------------------------------------------------


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
