"""What a recorded key holds, to whom it belongs, and whose words count when a node asks in others."""

from __future__ import annotations

from decimal import Decimal

import pytest

from approvals.models import Approval
from runs import Ask, Graph, Retry, Transient, start, tool
from runs.errors import Invalid
from tests.at_once import at_once
from tests.runs.driving import answer, drive, pass_lease, pass_time, registered
from tests.runs.posting import post, send, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_an_explicit_key_belongs_to_one_tool():
    graph = Graph("one key", state=Log)

    @graph.node(then=("again",))
    def first(run, state):
        run.call(send, text="x", key="mine:{run_id}")

    @graph.node
    def again(run, state):
        run.call(post, text="x", key="mine:{run_id}")

    with registered(graph):
        run = start("one key", {})
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "mine:{run_id}" in run.error and "send" in run.error
    assert sent == ["x"]


def test_what_people_approved_for_one_tool_is_not_done_by_another():
    """P8: the same key and arguments after a deploy that took another tool."""
    tools = [send]
    graph = Graph("changed tool", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(tools[0], text="x", key="mine:{run_id}", approve=Ask("Send it?"))

    with registered(graph):
        run = start("changed tool", {})
        drive(run)
        answer(run)
        tools[0] = post
        drive(run)
    assert sent == []
    assert run.status == "failed"
    assert "send" in run.error and "post" in run.error


def test_a_proposal_worded_anew_is_noted_and_the_recorded_one_is_what_runs():
    wordings = ["first words", "other words"]
    graph = Graph("wordy", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(send, text=wordings[0], key="mine:{run_id}", approve=Ask("Send it?"))

    with registered(graph):
        run = start("wordy", {})
        drive(run)
        answer(run)
        wordings.pop(0)
        drive(run)
    assert (run.status, sent) == ("completed", ["first words"])
    assert run.remarks.filter(kind="other_request").count() == 1


def test_a_named_question_worded_anew_is_noted_and_the_recorded_one_is_what_people_answered():
    wordings = ["first words", "other words"]
    graph = Graph("wordy question", state=Log)

    @graph.node
    def only(run, state):
        state.log.append(run.interrupt("Well?", payload=wordings[0], name="well").payload)

    with registered(graph):
        run = start("wordy question", {})
        drive(run)
        answer(run)
        wordings.pop(0)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["first words"])
    assert run.remarks.filter(kind="other_request").count() == 1


def test_two_graphs_may_each_have_a_tool_of_one_name(ada, settings):
    """What a person edits is checked by the tool of the run's own graph."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 0}

    def with_tool(name: str, kind: type) -> Graph:
        graph = Graph(name, state=None)

        def pay(amount, idempotency_key):
            sent.append(amount)

        pay.__annotations__ = {"amount": kind, "idempotency_key": str}
        made = tool(kind="write", honours_key=True)(pay)

        @graph.node
        def only(run, state):
            run.call(made, amount=1, approve=Ask("Pay?", reviewers="pm", schema={"type": "object"}))

        return graph

    whole, exact = with_tool("whole sums", int), with_tool("exact sums", Decimal)
    with registered(whole, exact):
        runs = [start(graph, {}) for graph in (whole, exact)]
        for run in runs:
            drive(run)
        first, second = (Approval.objects.get(run=run) for run in runs)
        with pytest.raises(Invalid):
            first.decide(by=ada, verdict="edit", payload={"amount": "2.50"})
        second.decide(by=ada, verdict="edit", payload={"amount": "2.50"})
        first.decide(by=ada, verdict="edit", payload={"amount": 2})
        for run in runs:
            drive(run)
            assert run.status == "completed", run.error
    assert sent == [2, Decimal("2.50")]


def test_two_runs_that_ask_for_one_key_at_the_same_moment_send_once():
    graph = Graph("shared key", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(send, text=run.id, key="one for all")

    with registered(graph):
        runs = [start("shared key", {}) for _ in range(6)]
        at_once(*(lambda run=run: drive(run, f"w{run.short_id}") for run in runs))
        for run in runs:
            run.refresh_from_db()
            if run.status == "running":
                pass_lease()
                drive(run)
    done = [run for run in runs if run.status == "completed"]
    assert (len(sent), len(done)) == (1, 1)
    for run in set(runs) - set(done):
        assert (run.status, run.error_kind) == ("failed", "permanent")
        assert str(done[0].pk) in run.error


def test_a_write_asked_with_other_arguments_after_a_crash_is_diverged_and_not_sent():
    """S11: never another call's result, never a silent substitute."""
    words = iter(["first", "second"])
    graph = Graph("fickle", state=Log)

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
    graph = Graph("keyed", state=Log)

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
    graph = Graph("shared", state=Log)

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
