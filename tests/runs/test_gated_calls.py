"""Deadlines and votes of a gated call."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from approvals.models import Approval
from runs import (
    Ask,
    Expired,
    Graph,
    GraphError,
    Rejected,
    start,
)
from tests.runs.driving import claim, drive, pass_time, registered
from tests.runs.posting import send, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


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
