"""Long calls, time limits and what goes on at once within a node (cases E2, E4, E5)."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection

from runs import Ask, Graph, Retry, start, tool
from runs.engine import clock, event_loop
from runs.engine.claim import Claimer
from runs.engine.shift import Shift
from runs.models import Run
from tests.runs.driving import answer, claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.posting import send_async, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_a_call_ten_leases_long_is_made_once_while_its_heart_beats(settings):
    """E2, E5: the body runs once and the call is made once, though a rival looks all the while.

    The engine's clock is moved by ten leases in steps of most of one; after each of them a real heartbeat comes. The
    lease is long, so that no slow machine ends it.
    """
    settings.DURABLEWEB = settings.DURABLEWEB | {"lease_seconds": 600, "heartbeat_seconds": 0.1}
    started, over = [], threading.Event()
    graph = Graph("long", state=Log)

    @tool(kind="write", honours_key=True, limit=timedelta(days=1))
    def slow_post(text: str, idempotency_key: str) -> str:
        sent.append(text)
        for _ in range(12):
            pass_time(500)
            wait_for_heartbeat(run.pk)
        over.set()
        return text

    @graph.node(limit=timedelta(days=1))
    def sit(run, state):
        started.append(1)
        run.call(slow_post, text="x")

    with registered(graph):
        run = start("long", {})
        looks: list[object] = []
        rival = threading.Thread(target=_rival, args=(run.pk, over, looks))
        rival.start()
        Shift(seconds=60, linger=0).work()
        rival.join()
    run.refresh_from_db()
    assert run.status == "completed"
    assert (started, sent) == ([1], ["x"])
    assert run.entries.count() == 1
    assert kinds(run) == ["start", "claim", "complete"]
    claimed, entry = run.checkpoints.get(kind="claim"), run.entries.get()
    assert entry.answered_at - claimed.at >= 10 * timedelta(seconds=600)
    assert looks and not any(looks), "it looked, and was never given the run"


def wait_for_heartbeat(run_id) -> None:
    """Until the lease is as long as it is when it is new."""
    until = time.monotonic() + 60
    while Run.objects.get(pk=run_id).wake_at < clock.now() + timedelta(seconds=550):
        assert time.monotonic() < until, "no heartbeat came"
        time.sleep(0.02)


def _rival(run_id, over: threading.Event, looks: list[object]) -> None:
    """Another process that tries to take the run all the while, from when the first has it."""
    claimer = Claimer("rival")
    while not over.is_set():
        if Run.objects.get(pk=run_id).leased_by is not None:
            looks.append(claimer.claim(alone=True, only=run_id))
        time.sleep(0.02)
    connection.close()


def test_a_sync_node_over_its_limit_is_failed_once_and_its_thread_counted_as_lost():
    """E4: with one attempt, failed once and not started again in five leases, by a moved clock."""
    started, release = [], threading.Event()
    graph = Graph("stuck", state=Log)

    @graph.node(retry=Retry(attempts=1), limit=timedelta(seconds=0.3))
    def hang(run, state):
        started.append(1)
        release.wait(60)

    with registered(graph):
        run = start("stuck", {})
        shift = Shift(seconds=60, linger=0)
        shift.work()
        release.set()
        assert shift.lost_threads == 1
        for _ in range(5):
            pass_lease()
            assert Shift(seconds=1, linger=0).work() == 0
    run.refresh_from_db()
    assert (run.status, run.error_kind, started) == ("failed", "exhausted", [1])
    assert "time limit" in run.error


hanging = threading.Event()


@pytest.fixture
def let_go():
    """What hangs in a test comes back when it is over."""
    hanging.clear()
    yield hanging.set
    hanging.set()


async def asks(run, state):
    await run.call(hang_in_thread)


async def hands_to_a_thread(run, state):
    await asyncio.to_thread(hanging.wait, 60)


async def blocks(run, state):
    hanging.wait(60)


def sits(run, state):
    hanging.wait(60)


async def leaves_one(run, state):
    with suppress(TimeoutError):
        await asyncio.wait_for(run.call(hang_when_found_out), 0.1)


@pytest.mark.parametrize("body", [asks, hands_to_a_thread, blocks, sits, leaves_one])
def test_what_hangs_in_a_graph_with_async_nodes_ends_the_shift_and_takes_no_neighbour_with_it(
    body, let_go, monkeypatch, settings
):
    """E4, P5: it fails at its limit, the process claims nothing more, and what ran beside it goes on elsewhere."""
    monkeypatch.setattr(event_loop, "TURNS_WITHIN_SECONDS", 0.5)
    settings.DURABLEWEB = settings.DURABLEWEB | {"grace_seconds": 1.0}
    graph, beside = Graph("hangs", state=Log, operators="ops"), Graph("beside", state=Log)
    graph.node(retry=Retry(attempts=1), limit=timedelta(seconds=0.5), then="unreached")(body)

    @graph.node
    async def unreached(run, state): ...

    @beside.node
    async def wait(run, state):
        await asyncio.sleep(1.5)

    with registered(graph, beside):
        run, other = start("hangs", {}), start("beside", {})
        shift = Shift(seconds=60, linger=0)
        shift.work()
        assert shift.lost_threads >= 1
        run.refresh_from_db()
        assert (run.status, run.error_kind) == ("failed", "exhausted"), run.error
        assert "time limit" in run.error
        other.refresh_from_db()
        assert (other.status, other.deaths, other.silent) in {("completed", 0, 0), ("running", 0, 0)}
        let_go()
        Shift(seconds=60, linger=0).work()
    other.refresh_from_db()
    assert other.status == "completed"


@tool
def hang_in_thread() -> None:
    hanging.wait(60)


@tool(kind="write", honours_key=True, limit=timedelta(seconds=5))
def hang_when_found_out(idempotency_key: str) -> None:
    sent.append(idempotency_key)
    hanging.wait(0.3 if len(sent) == 1 else 60)


def test_an_async_node_is_cancelled_at_its_limit_and_tried_as_often_as_its_policy_says():
    """E4: with three attempts, exactly three starts, spaced by the back-off, by a moved clock."""
    started = []
    graph = Graph("slow async", state=Log)

    @graph.node(retry=Retry(attempts=3, first=600, cap=1200, jitter=0), limit=timedelta(seconds=0.2))
    async def hang(run, state):
        started.append(clock.elapsed())
        await asyncio.sleep(60)

    with registered(graph):
        run = start("slow async", {})
        for starts, back_off in ((1, 600), (2, 1200)):
            Shift(seconds=60, linger=0).work()
            run.refresh_from_db()
            assert (run.status, len(started)) == ("retrying", starts)
            waits = (run.wake_at - run.checkpoints.latest("seq").at).total_seconds()
            assert back_off <= waits < back_off + 60
            pass_time(back_off / 2)
            assert claim(run) is None
            pass_time(back_off / 2)
        Shift(seconds=60, linger=0).work()
        for _ in range(5):
            pass_lease()
            assert claim(run) is None
    run.refresh_from_db()
    assert (run.status, run.error_kind, len(started)) == ("failed", "exhausted", 3)
    pauses = [later - before for before, later in zip(started, started[1:], strict=False)]
    assert all(pause >= least for pause, least in zip(pauses, (600, 1200), strict=True)), pauses


def test_async_nodes_and_tools_go_through_the_same_ledger():
    graph = Graph("async", state=Log)

    @graph.node
    async def publish(run, state):
        made = await run.gather(send_async.bind(text="a"), send_async.bind(text="b"))
        said = await run.interrupt("Well?", payload={"n": 7})
        state.log += [*made, said.verdict, str(said.payload["n"] + 1)]

    with registered(graph):
        run = start("async", {})
        Shift(seconds=60, linger=0).work()
        run.refresh_from_db()
        assert run.status == "waiting"
        answer(run)
        Shift(seconds=60, linger=0).work()
    run.refresh_from_db()
    assert run.status == "completed"
    assert run.state_at()["log"] == ["A", "B", "approve", "8"]
    assert sorted(sent) == ["a", "b"]


def test_gather_waits_for_all_and_answers_reach_their_caller_in_any_order():
    """S4: two interrupts in one step; answers by key, in either order."""
    graph = Graph("two questions", state=Log)

    @graph.node
    def ask(run, state):
        first, second = run.gather(
            Ask("First?", payload=1, name="one"), Ask("Second?", payload=2, name="two")
        )
        state.log += [f"{first.payload}", f"{second.payload}"]

    with registered(graph):
        run = start("two questions", {})
        drive(run)
        answer(run, "two", payload=22)
        assert claim(run) is None
        answer(run, "one", payload=11)
        drive(run)
    assert run.state_at()["log"] == ["11", "22"]
