"""Steps, failures and the end of a run, in rows: the loop of MISSION A2."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from runs import END, Graph, Permanent, Retry, Transient, start, tool
from runs.core.outcomes import Lost, Stepped
from runs.errors import Conflict, Invalid
from runs.models import Run
from tests.runs.driving import claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.posting import sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


class Counted(BaseModel):
    n: int = 0
    log: list[str] = []


loop = Graph("loop", state=Counted)


@loop.node(then=("count", END))
def count(run, state):
    state.n += 1
    return END if state.n == 3 else "count"


@pytest.mark.smoke
def test_a_run_goes_from_node_to_node_with_a_checkpoint_after_each():
    with registered(loop):
        run = start("loop", {"n": 0})
        assert (run.status, run.step, run.seq) == ("created", 0, 0)
        assert isinstance(drive(run), Stepped)
    assert (run.status, run.step, run.wake_at, run.leased_by) == ("completed", 3, None, None)
    assert kinds(run) == ["start", "claim", "step", "step", "complete"]
    assert [run.state_at(seq)["n"] for seq in range(5)] == [0, 0, 1, 2, 3]


def test_a_run_that_is_cut_short_goes_on_from_its_last_checkpoint_on_another_worker():
    with registered(loop):
        run = start("loop", {"n": 0})
        first = claim(run, "w1")
        first.most_steps = 1
        assert first.run() is None
        run.refresh_from_db()
        assert (run.step, run.status, run.leased_by) == (1, "running", None)
        drive(run, "w2")
    assert (run.status, run.step) == ("completed", 3)
    assert kinds(run) == ["start", "claim", "step", "hand_back", "claim", "step", "complete"]


def test_the_same_run_rung_twice_is_claimed_by_one():
    """E1: one claims; the other returns without calling a node."""
    with registered(loop):
        run = start("loop", {"n": 0})
        assert claim(run, "w1") is not None
        assert claim(run, "w2") is None


def test_a_worker_that_lost_its_lease_can_change_nothing():
    """P2: every write carries the fence."""
    with registered(loop):
        run = start("loop", {"n": 0})
        stalled = claim(run, "w1")
        pass_lease()
        drive(run, "w2")
        before = Run.objects.values().get(pk=run.pk)
        assert isinstance(stalled.run(), Lost)
        assert Run.objects.values().get(pk=run.pk) == before
    assert run.status == "completed"
    assert kinds(run) == ["start", "claim", "lost", "claim", "step", "step", "complete"]


def test_a_transient_failure_is_retried_by_the_nodes_policy_and_then_exhausted():
    """MISSION A7: attempts are counted, spaced by the back-off, and belong to the current step."""
    starts = []
    graph = Graph("shaky", state=Counted)

    @graph.node(retry=Retry(attempts=3, first=10, jitter=0))
    def shake(run, state):
        starts.append(1)
        state.n += 1
        raise Transient("not now")

    with registered(graph):
        run = start("shaky", {})
        drive(run)
        assert (run.status, run.attempt) == ("retrying", 1)
        assert claim(run) is None
        pass_time(10.1)
        drive(run)
        assert claim(run) is None
        pass_time(20.1)
        drive(run)
    assert len(starts) == 3
    assert (run.status, run.error_kind) == ("failed", "exhausted")
    assert "not now" in run.error
    assert run.state_at()["n"] == 0
    assert kinds(run)[-1] == "fail"


def test_a_loop_without_end_fails_at_the_step_limit_naming_the_node():
    """R6"""
    graph = Graph("endless", state=Counted, max_steps=5)

    @graph.node(then=("again", END))
    def again(run, state):
        return "again"

    with registered(graph):
        run = start("endless", {})
        drive(run)
    assert (run.status, run.error_kind, run.step) == ("failed", "loop_limit", 4)
    assert "again" in run.error


def test_a_state_that_cannot_be_stored_fails_the_run_with_that_reason():
    """D2, D4: NaN is refused at write, naming node and path; the run is not left running."""
    graph = Graph("nan")

    @graph.node
    def poison(run, state):
        state["x"] = [1.0, float("nan")]

    with registered(graph):
        run = start("nan", {})
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "bad_state")
    assert "poison" in run.error and "$.x[1]" in run.error


def test_an_error_text_with_nul_and_surrogates_is_stored_escaped():
    """D3"""
    graph = Graph("loud")

    @graph.node(retry=Retry(attempts=1))
    def shout(run, state):
        raise RuntimeError("a\x00b\ud800c")

    with registered(graph):
        run = start("loud", {})
        drive(run)
    assert run.status == "failed"
    assert "a\\x00b\\ud800c" in run.error


def test_cancel_takes_the_run_from_its_worker_and_needs_a_reason():
    with registered(loop):
        run = start("loop", {"n": 0})
        held = claim(run)
        with pytest.raises(Invalid):
            run.cancel(by="olga", reason=" ")
        run.cancel(by="olga", reason="wrong vendor")
        assert isinstance(held.run(), Lost)
        with pytest.raises(Conflict):
            run.cancel(by="olga", reason="again")
    run.refresh_from_db()
    assert (run.status, run.wake_at, run.leased_by) == ("cancelled", None, None)
    assert run.checkpoints.get(kind="cancel").reason == "wrong vendor"


def test_a_read_that_is_refused_for_good_fails_its_entry_and_the_node_may_go_another_way():
    graph = Graph("forgiving", state=Counted)

    @tool
    def missing(word: str) -> str:
        sent.append("asked")
        raise Permanent(f"no {word}")

    @graph.node(retry=Retry(attempts=2, first=0))
    def seek(run, state):
        from runs import EffectFailed

        try:
            run.call(missing, word="x")
        except EffectFailed as error:
            state.log.append(str(error))
        if len(state.log) == 1 and run.once("first", lambda: True) and not sent.count("again"):
            sent.append("again")
            raise Transient("once more")

    with registered(graph):
        run = start("forgiving", {})
        drive(run)
        pass_time(1)
        drive(run)
    assert run.status == "completed"
    assert sent == ["asked", "again"]
    assert "no x" in run.state_at()["log"][0]
