"""A gated call: it runs once with what was approved, or not at all; its deadline, its votes, and the way back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from approvals.models import Approval
from runs import Ask, Expired, Graph, GraphError, Rejected, start, tool
from runs.core.outcomes import Fails, Waits
from runs.errors import Conflict
from runs.models import Run
from tests.runs.driving import answer, claim, drive, pass_time, registered, undo
from tests.runs.posting import send, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


@tool
def look(word: str) -> dict:
    sent.append(f"look {word}")
    return {"word": word}


asking = Graph("asking", state=Log)


@asking.node
def ask(run, state):
    run.call(look, word="before")
    said = run.call(send, text="hello", key="send:{run_id}", approve=Ask("Send it?", reviewers="pm"))
    state.log.append(said)


def proposing(ask: Ask) -> Graph:
    """Of one node, which only sends what was approved."""
    graph = Graph("proposing", state=Log)

    @graph.node
    def propose(run, state):
        run.call(send, text="x", approve=ask)

    return graph


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
    graph = Graph("refusable", state=Log)

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
    with registered(proposing(Ask("Send?"))):
        run = start("proposing", {})
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
    with registered(proposing(Ask("Send?", due=timedelta(hours=1)))):
        run = start("proposing", {})
        drive(run)
        assert run.wake_at is not None
        assert claim(run) is None
        pass_time(3601)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    assert sent == []


def test_undone_past_its_deadline_it_expires_at_once():
    with registered(proposing(Ask("Send?", due=timedelta(seconds=5)))):
        run = start("proposing", {})
        drive(run)
        entry = answer(run, undo=60)
        pass_time(6)
        assert undo(run, entry) == "expired"
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    assert sent == []


@pytest.mark.parametrize(
    ("on_expiry", "log", "outcome"),
    [
        ("expired", ["expired"], "expired"),
        ("rejected", ["rejected by the deadline"], "rejected"),
        ("auto_approve", ["sent x"], "auto_approved"),
    ],
)
def test_a_gated_call_whose_deadline_passes_ends_as_its_author_declared(on_expiry, log, outcome):
    graph = Graph("overdue", state=Log)

    @graph.node
    def deliver(run, state):
        try:
            ask = Ask("Send it?", due=timedelta(minutes=5), on_expiry=on_expiry)
            state.log.append(run.call(send, text="x", approve=ask))
        except Rejected as no:
            state.log.append(f"rejected by {no.by}")
        except Expired:
            state.log.append("expired")

    with registered(graph):
        run = start("overdue", {})
        drive(run)
        pass_time(299)
        assert claim(run) is None
        pass_time(2)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", log)
    assert sent == (["x"] if outcome == "auto_approved" else [])
    assert Approval.objects.get(run=run).outcome == outcome
    assert run.entries.filter(kind="effect").count() == len(sent)


@pytest.mark.parametrize("due", [3600, "tomorrow", datetime(2030, 1, 1)])  # noqa: DTZ001
def test_a_deadline_that_is_none_is_refused_where_it_is_written(due):
    with pytest.raises(GraphError, match="due"):
        Ask("Send it?", due=due)


def test_two_must_agree_and_an_edit_in_between_asks_the_first_again(ada, bob, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 0}
    graph = Graph("two agree", state=Log)

    @graph.node
    def deliver(run, state):
        state.log.append(run.call(send, text="x", approve=Ask("Send it?", reviewers="pm", quorum=2)))

    with registered(graph):
        run = start("two agree", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        approval.decide(by=ada, verdict="approve")
        assert claim(run) is None
        approval.decide(by=bob, verdict="edit", payload={"text": "y"})
        assert claim(run) is None, "one vote for the edit, none any more for the proposal"
        approval.decide(by=ada, verdict="approve")
        drive(run)
    assert (run.status, sent) == ("completed", ["y"])
