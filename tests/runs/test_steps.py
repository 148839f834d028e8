"""Steps, waits and ends of a run, in rows: the loop of MISSION A2."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from runs import END, Ask, Graph, Permanent, Rejected, Retry, Transient, start, tool
from runs.core.outcomes import Fails, Lost, Stepped, Waits
from runs.errors import Conflict, Invalid, Missing
from runs.models import Checkpoint, LedgerEntry, Remark, Run, Signal
from runs.models.archived import COLD_TABLES, everywhere
from tests.runs.driving import answer, claim, drive, kinds, pass_lease, pass_time, registered, undo

pytestmark = pytest.mark.django_db(transaction=True)


class Counted(BaseModel):
    n: int = 0
    log: list[str] = []


sent: list[str] = []


@pytest.fixture(autouse=True)
def nothing_sent():
    sent.clear()


@tool(kind="write", honours_key=True)
def send(text: str, idempotency_key: str) -> str:
    sent.append(text)
    return f"sent {text}"


@tool
def look(word: str) -> dict:
    sent.append(f"look {word}")
    return {"word": word}


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


asking = Graph("asking", state=Counted)


@asking.node
def ask(run, state):
    run.call(look, word="before")
    said = run.call(send, text="hello", key="send:{run_id}", approve=Ask("Send it?", reviewers="pm"))
    state.log.append(said)


@pytest.mark.smoke
def test_a_gated_call_runs_once_with_exactly_what_was_approved():
    """P8, A5: approved = executed; the first effect of the node is not repeated by the wait (S7)."""
    with registered(asking):
        run = start("asking", {})
        assert drive(run) == Waits(("send:{run_id}?",))
        assert (run.status, run.wake_at) == ("waiting", None)
        question = run.entries.get(kind="interrupt")
        assert question.request_value()["payload"] == {"text": "hello"}
        answer(run, verdict="edit", payload={"text": "good day"})
        drive(run)
    assert run.status == "completed"
    assert run.state_at()["log"] == ["sent good day"]
    assert sent == ["look before", "good day"]
    effect = run.entries.get(key="send:{run_id}")
    assert effect.idempotency_key == f"send:{run.id}"
    question.refresh_from_db()
    assert effect.request_digest == question.approved_digest
    assert effect.decided_by_id == question.pk


def test_a_rejection_reaches_the_node_and_leaves_no_effect():
    """A1, A13: no effect row, and the reason byte for byte."""
    caught = []
    graph = Graph("refusable", state=Counted)

    @graph.node
    def propose(run, state):
        try:
            run.call(send, text="x", approve=Ask("Send?"))
        except Rejected as no:
            caught.append((no.reason, no.by))
            state.log.append("rejected")

    with registered(graph):
        run = start("refusable", {})
        drive(run)
        answer(run, verdict="reject", reason="nein, “zu früh”\n ", by="bob")
        drive(run)
    assert caught == [("nein, “zu früh”\n ", "bob")]
    assert run.status == "completed"
    assert sent == []
    assert not run.entries.filter(kind="effect").exists()


def test_an_uncaught_rejection_ends_the_run_as_rejected():
    graph = Graph("stubborn", state=Counted)

    @graph.node
    def propose(run, state):
        run.call(send, text="x", approve=Ask("Send?"))

    with registered(graph):
        run = start("stubborn", {})
        drive(run)
        answer(run, verdict="reject", reason="no")
        assert isinstance(drive(run), Fails)
    assert (run.status, run.error_kind) == ("failed", "rejected")
    assert not Run.objects.dead_letters().exists()


def test_an_answer_is_seen_only_once_its_undo_window_is_over():
    """S13: undone in the window, nothing was sent; afterwards either the undo or the claim wins."""
    with registered(asking):
        run = start("asking", {})
        drive(run)
        entry = answer(run, undo=8)
        assert claim(run) is None
        assert undo(run, entry) == "open"
        pass_time(9)
        assert claim(run) is None
        entry = answer(run, undo=8)
        pass_time(9)
        drive(run)
        with pytest.raises(Conflict, match="Too late to undo"):
            undo(run, entry)
    assert run.status == "completed"
    assert sent == ["look before", "hello"]


def test_a_deadline_that_passes_ends_the_wait_as_expired():
    """B4: expiry fails closed; an answered one never expires."""
    from datetime import timedelta

    graph = Graph("dated", state=Counted)

    @graph.node
    def propose(run, state):
        run.call(send, text="x", approve=Ask("Send?", due=timedelta(hours=1)))

    with registered(graph):
        run = start("dated", {})
        drive(run)
        assert run.wake_at is not None
        assert claim(run) is None
        pass_time(3601)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    assert sent == []


def test_undone_past_its_deadline_it_expires_at_once():
    from datetime import timedelta

    graph = Graph("dated too", state=Counted)

    @graph.node
    def propose(run, state):
        run.call(send, text="x", approve=Ask("Send?", due=timedelta(seconds=5)))

    with registered(graph):
        run = start("dated too", {})
        drive(run)
        entry = answer(run, undo=60)
        pass_time(6)
        assert undo(run, entry) == "expired"
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    assert sent == []


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


def test_a_write_asked_with_other_arguments_after_a_crash_is_diverged_and_not_sent():
    """S11: never another call's result, never a silent substitute."""
    words = iter(["first", "second"])
    graph = Graph("fickle", state=Counted)

    @graph.node(retry=Retry(attempts=2, first=0))
    def propose(run, state):
        run.call(send, text=next(words))
        raise Transient("again")

    with registered(graph):
        run = start("fickle", {})
        drive(run)
        pass_time(1)
        drive(run)
    assert sent == ["first"]
    assert (run.status, run.error_kind) == ("failed", "diverged")
    assert "first" in run.error and "second" in run.error and "explicit key" in run.error


def test_an_explicit_key_returns_the_recorded_result_in_a_later_step():
    graph = Graph("keyed", state=Counted)

    @graph.node(then="two")
    def one(run, state):
        state.log.append(run.call(send, text="x", key="k:{run_id}"))

    @graph.node
    def two(run, state):
        state.log.append(run.call(send, text="x", key="k:{run_id}"))

    with registered(graph):
        run = start("keyed", {})
        drive(run)
    assert run.state_at()["log"] == ["sent x", "sent x"]
    assert sent == ["x"]


def test_an_explicit_key_of_another_run_is_refused_naming_it():
    graph = Graph("shared", state=Counted)

    @graph.node(retry=Retry(attempts=1))
    def one(run, state):
        run.call(send, text="x", key="the-one")

    with registered(graph):
        first = start("shared", {})
        drive(first)
        second = start("shared", {})
        drive(second)
    assert second.status == "failed"
    assert str(first.id) in second.error
    assert sent == ["x"]


def test_starting_twice_under_one_key_gives_one_run():
    """R11"""
    with registered(loop):
        first = start("loop", {"n": 1}, key="monday")
        assert start("loop", {"n": 1}, key="monday").pk == first.pk
        with pytest.raises(Conflict, match="another input"):
            start("loop", {"n": 2}, key="monday")
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    "key", ["", " ", "\t\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x1c", "\x85", "x" * 201, "a\x00b"]
)
def test_a_blank_or_impossible_key_is_refused(key):
    """E9"""
    with registered(loop), pytest.raises(Invalid):
        start("loop", {}, key=key)
    assert not Run.objects.exists()


def test_a_key_that_nobody_can_read_is_refused_unless_it_is_there_already(monkeypatch):
    with registered(loop):
        for key in ["\u200b", "\u3164 ", "\u2800", "a\nb", "a\x01b", "\u202ea", "\ufe0f"]:
            with pytest.raises(Invalid, match="people can read it") as refused:
                start("loop", {}, key=key)
            assert list(refused.value.fields) == ["key"]
        with monkeypatch.context() as before:
            before.setattr("runs.engine.starting.is_legible", lambda key: True)
            first = start("loop", {"n": 1}, key="a\nb")
        assert start("loop", {"n": 1}, key="a\nb").pk == first.pk
        start("loop", {}, key="Großauftrag 7: 日本 é")
    assert Run.objects.count() == 2


def test_what_does_not_fit_is_refused_at_the_start_and_nothing_is_kept():
    with registered(loop):
        with pytest.raises(Missing, match="no graph 'lop'"):
            start("lop", {})
        with pytest.raises(Invalid, match="n: "):
            start("loop", {"n": "many"})
        with pytest.raises(Invalid):
            start("loop", [1])
        with pytest.raises(Invalid, match="priority"):
            start("loop", {}, priority=9)
    assert not Run.objects.exists()


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


@pytest.mark.smoke
@pytest.mark.parametrize("rows", [Checkpoint, LedgerEntry, Remark, Signal])
def test_rows_of_a_run_are_read_in_both_of_their_tables_by_this_django(rows):
    """A18: the door to the archive sets attributes of Django's Query that its documentation does not promise. Where a
    new Django has them under other names, archived runs would look empty: runs/models/archived.py says what is meant.
    """
    table = rows._meta.db_table
    for found in (everywhere(rows), everywhere(rows).filter(run_id=Run().pk).order_by("pk")[:5]):
        assert COLD_TABLES[table] in str(found.query) and f'"{table}"' in str(found.query), str(found.query)
    inner = everywhere(rows).filter(run_id=Run().pk)
    assert COLD_TABLES[table] in str(Run.objects.filter(pk__in=inner.values("run")).query)
    assert not inner.exists() and not inner.count() and list(inner) == []
