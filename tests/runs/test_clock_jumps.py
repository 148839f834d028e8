"""Leases and clocks: a stalled worker, a host clock that jumps, a provider that does not know yet."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import (
    Ambiguous,
    Found,
    Graph,
    Retry,
    start,
    tool,
)
from runs.conf import conf
from runs.core.outcomes import Lost
from runs.engine import clock, sql
from runs.models import Run
from tests.runs.driving import claim, drive, pass_call, pass_lease, pass_time, registered
from tests.runs.posting import send, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_a_heartbeat_extends_only_what_its_worker_still_holds():
    """A thread that stalls through its lease: its late heartbeat moves nothing, and its step is not committed."""
    bodies = []
    graph = Graph("stalling", state=Log)

    @graph.node
    def only(run, state):
        bodies.append(1)
        if len(bodies) == 1:
            pass_lease()
            assert drive(Run.objects.get(pk=run.id), "w2") is not None
        state.log.append(f"body {len(bodies)}")

    with registered(graph):
        run = start("stalling", {})
        held = claim(run, "w1")
        assert isinstance(held.run(), Lost)
        run.refresh_from_db()
        until = clock.now() + conf.lease
        for worker, fence in (("w1", held.lease.fence), ("w1", run.fence), ("w2", run.fence)):
            assert sql.heartbeat(worker, [(run.pk, fence)], until) == set()
    assert (run.status, run.state_at()["log"], run.wake_at) == ("completed", ["body 2"], None)


@pytest.mark.parametrize("hours", [5, -5])
def test_a_host_clock_that_jumps_loses_no_run_and_doubles_no_effect(hours):
    graph = Graph("jumping", state=Log)

    @graph.node(then=("second",))
    def first(run, state):
        run.call(send, text="x", key="x:{run_id}")
        pass_time(hours * 3600)

    @graph.node
    def second(run, state):
        state.log.append("second")

    with registered(graph):
        run = start("jumping", {})
        drive(run)
        run.refresh_from_db()
        if run.status != "completed":
            pass_time(abs(hours) * 3600 + 10)
            for _ in range(3):
                pass_lease()
                drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["second"])
    assert sent == ["x"]


def test_a_provider_that_is_asked_afterwards_may_not_know_yet_and_nothing_is_sent_before_it_can():
    """Ambiguous, then "not found" while the first call may be under way: asked only after limit and lease."""
    asked = []

    def look_up(idempotency_key, arguments):
        asked.append(clock.now())
        return Found("found") if len(sent) > 1 else None

    @tool(kind="write", reconcile=look_up, limit=timedelta(seconds=10), retry=Retry(attempts=2, first=0))
    def deliver(text: str, idempotency_key: str) -> str:
        sent.append(idempotency_key)
        raise Ambiguous("no answer")

    graph = Graph("looked up", state=Log)

    @graph.node
    def only(run, state):
        state.log.append(run.call(deliver, text="x"))

    with registered(graph):
        run = start("looked up", {})
        began = clock.now()
        drive(run)
        assert asked == []
        pass_call(10)
        drive(run)
        pass_call(10)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["found"])
    assert (asked[0] - began).total_seconds() >= 10 + conf.lease_seconds
    assert len(sent) == 2 and len(set(sent)) == 1, "the same key"
