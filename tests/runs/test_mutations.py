"""Proof that the kit and its races see what they are for: with one rule taken out of the engine, they must fail.

The rules are taken out in memory, for the time of one test.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from runs import Ask, Graph, start, tool
from runs.conf import conf
from runs.engine import boundaries, sql
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.ledger import RowLedger
from runs.models import LedgerEntry, Remark
from runs.testing import CrashFound, Unanswered, crash_everywhere, drive, go_on, moved_clock
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@tool(kind="write", limit=timedelta(seconds=5))
def post(text: str) -> str:
    return f"posted {text}"


posting = Graph("mutated-posting", state=Log, operators="ops")


@posting.node
def publish(run, state):
    state.log.append(run.call(post, text="hello"))


asking = Graph("mutated-asking", state=Log)


@asking.node
def ask(run, state):
    first, second = run.gather(Ask("One?", name="one"), Ask("Two?", name="two"))
    state.log += [first.verdict, second.verdict]


# -- the intent -------------------------------------------------------------------------------------------


def open_nothing(ledger, entry, tried=None):
    """As if a tool were called first and written down afterwards."""
    entry.tried_at = ledger.lease.now()
    entry.attempts += 1
    return entry


def test_a_call_survives_every_kill():
    assert crash_everywhere(posting, {}).effects == {"post": 1}


def test_without_the_intent_a_kill_is_found_to_call_twice(monkeypatch):
    monkeypatch.setattr(RowLedger, "open", open_nothing)
    with pytest.raises(CrashFound, match="killed at boundary .* was called 2 times"):
        crash_everywhere(posting, {})


def test_without_the_quarantine_and_the_question_a_kill_is_found_to_call_twice(monkeypatch):
    """A try that is found after a crash must be asked about, not made again."""
    from runs.core import effects

    monkeypatch.setattr(effects, "_resolve", lambda ledger, tool, entry: iter(()))
    with pytest.raises(CrashFound, match="killed at boundary .* was called 2 times"):
        crash_everywhere(posting, {})


# -- the fence --------------------------------------------------------------------------------------------


@contextmanager
def a_stalled_call():
    """A worker stands in the middle of a call, in a thread; yields its run, and `let_it_go` to bring it to its end."""
    inside, leave = threading.Event(), threading.Event()

    @tool(kind="write", limit=timedelta(seconds=5))
    def slow(text: str) -> str:
        inside.set()
        assert leave.wait(60)
        return "the late result"

    graph = Graph("mutated-stall", state=Log, operators="ops")

    @graph.node
    def call(run, state):
        state.log.append(run.call(slow, text="x"))

    run = start(graph, {})

    def work():
        try:
            Drive(*Claimer("stalled", [graph]).claim(alone=True, only=run.pk)).run()
        finally:
            connection.close()

    def let_it_go():
        leave.set()
        thread.join(60)
        assert not thread.is_alive()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert inside.wait(60)
        yield run, graph, let_it_go
    finally:
        let_it_go()


def a_late_result():
    """E20: what becomes of a result that arrives while another worker, in the same node, puts the call in doubt."""
    second = threading.current_thread()
    with moved_clock() as moved, a_stalled_call() as (run, graph, let_it_go):
        moved.move(conf.lease_seconds + 1)
        boundaries.on_boundary = lambda name: (
            let_it_go() if name == "changed effect" and threading.current_thread() is second else None
        )
        try:
            with pytest.raises(Unanswered):
                go_on(run, graph)  # the outcome is unknown, and a person is asked
        finally:
            boundaries.on_boundary = None
        return LedgerEntry.objects.get(run=run, kind="effect"), Remark.objects.filter(run=run)


def test_a_late_result_is_evidence_and_never_the_outcome():
    """E20, P2."""
    entry, remarks = a_late_result()
    assert (entry.status, entry.result) == ("in_doubt", None)
    assert [(remark.kind, remark.body) for remark in remarks] == [("late_result", '"the late result"')]


def without_fence(execute, statement, parameters, many, context):
    return execute(always("fence", statement), parameters, many, context)


def always(column, statement):
    """The statement with `column = %s` made true, whatever is given."""
    return re.sub(rf"({column} = %s(::bigint)?)", r"(\1 OR TRUE)", statement)


def test_without_the_fence_in_the_ledger_s_where_the_late_result_is_taken(monkeypatch):
    change = sql.change_entry

    def unfenced(*args):
        with connection.execute_wrapper(without_fence):
            return change(*args)

    monkeypatch.setattr(sql, "change_entry", unfenced)
    entry, remarks = a_late_result()
    assert (entry.status, entry.result) == ("done", '"the late result"')
    assert not remarks.exists()


def a_late_intent():
    """Whether a worker that has lost its run can still open an entry in it."""
    with moved_clock() as moved:
        run = start(posting, {})
        stalled = Drive(*Claimer("stalled", [posting]).claim(alone=True, only=run.pk))
        moved.move(conf.lease_seconds + 1)
        assert Claimer("second", [posting]).claim(alone=True, only=run.pk) is not None
        stalled.run()
        return LedgerEntry.objects.filter(run=run).count()


def test_a_worker_that_lost_its_run_opens_nothing():
    """P2."""
    assert a_late_intent() == 0


def test_without_the_fence_in_the_insert_s_where_it_opens_an_intent(monkeypatch):
    add = sql.add_entry

    def unfenced(*args):
        with connection.execute_wrapper(without_fence):
            return add(*args)

    monkeypatch.setattr(sql, "add_entry", unfenced)
    assert a_late_intent() == 1


def a_late_heartbeat():
    """How far a heartbeat that carries an old fence moves the lease of the same worker's newer claim."""
    with moved_clock() as moved:
        run = start(posting, {})
        old, _ = Claimer("same", [posting]).claim(alone=True, only=run.pk)
        old.hand_back("stopping")
        Claimer("same", [posting]).claim(alone=True, only=run.pk)
        run.refresh_from_db()
        before = run.wake_at
        sql.heartbeat("same", [(run.pk, old.fence)], moved.now() + timedelta(hours=1))
        run.refresh_from_db()
        return run.wake_at - before


def test_a_heartbeat_of_an_older_claim_moves_nothing():
    """E19."""
    assert a_late_heartbeat() == timedelta()


def test_without_the_fence_in_the_heartbeat_s_where_it_moves_the_lease(monkeypatch):
    def any_fence(execute, statement, parameters, many, context):
        head, _, _ = statement.partition(" AND (id, fence) IN")
        if head == statement:
            return execute(statement, parameters, many, context)
        return execute(f"{head} RETURNING id", parameters[:2], many, context)

    beat = sql.heartbeat

    def unfenced(*args):
        with connection.execute_wrapper(any_fence):
            return beat(*args)

    monkeypatch.setattr(sql, "heartbeat", unfenced)
    assert a_late_heartbeat() > timedelta(minutes=50)


# -- the counter of answers -------------------------------------------------------------------------------


def drive_with_an_answer_between_look_and_park():
    """E18: both answers commit after the worker's last look at its entries and before it commits the wait."""
    answers = {"one": {"verdict": "approve"}, "two": {"verdict": "reject"}}
    from runs.testing.driving import give_answers, scripted

    run = start(asking, {})
    injected = []

    def at(name):
        if name == "commit wait" and not injected:
            injected.append(name)
            with moved_clock() as moved:
                give_answers(run, scripted(answers), moved)

    boundaries.on_boundary = at
    try:
        return go_on(run, asking, answers)
    finally:
        boundaries.on_boundary = None


def test_an_answer_between_look_and_park_wakes_the_run():
    """E18."""
    run = drive_with_an_answer_between_look_and_park()
    assert (run.status, run.state_at()["log"]) == ("completed", ["approve", "reject"])


def test_without_the_counter_of_answers_the_run_sleeps_for_ever(monkeypatch):
    assignment = sql._assignment

    def deaf(name, parked, cast):
        return always("answers", assignment(name, parked, cast))

    monkeypatch.setattr(sql, "_assignment", deaf)
    for built in (sql._one_statement, sql._two_statements):
        built.cache_clear()
    try:
        with pytest.raises(Unanswered, match="its wake-up was lost"):
            drive_with_an_answer_between_look_and_park()
    finally:
        monkeypatch.undo()
        for built in (sql._one_statement, sql._two_statements):
            built.cache_clear()


def test_an_ordinary_drive_needs_no_injected_answer():
    assert (
        drive(asking, {}, {"one": {"verdict": "approve"}, "two": {"verdict": "approve"}}).status
        == "completed"
    )
