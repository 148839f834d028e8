"""A run that fails undoes what it did: in reverse, each once, and keeps its error."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from runs import Ask, Graph, start, tool
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import LedgerEntry, Run
from runs.testing import go_on
from tests.runs.driving import answer, are_sound, claim, drive, kinds, pass_time, registered, undo
from tests.runs.travel import Trip, book, happened, refuse, tell
from tests.runs.trips import ALL_DONE, ALL_UNDONE, kept, started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]


# -- a run that fails -------------------------------------------------------------------------------------------


def test_a_run_that_fails_undoes_its_writes_the_latest_first_and_keeps_its_error():
    run = started()
    assert (run.status, run.ending, run.leased_by) == ("running", "failed", None)
    assert (run.error_kind, happened) == ("permanent", ALL_DONE), "what it fails with is there at once"
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    assert (run.status, run.ending, run.error_kind) == ("failed", "", "permanent")
    assert "sold out" in run.error and run.finished_at and run.wake_at is None
    assert run.state_at()["log"] == ["FLIGHT", "HOTEL"], "its state is left as it was"
    assert kinds(run)[-3:] == ["compensate", "claim", "fail"]
    assert "sold out" in run.checkpoints.get(kind="fail").reason
    are_sound(run)


def test_each_compensation_is_an_entry_that_names_what_it_undoes():
    run = started()
    drive(run)
    for entry in run.entries.filter(compensates__isnull=False):
        undone = entry.compensates
        assert (entry.status, undone.status) == ("done", "compensated")
        assert entry.name == undone.compensation
        assert entry.key == f"compensate:{undone.step}:{undone.key}"
        assert entry.idempotency_key == f"{run.pk}:{entry.key}"
        request = entry.request_value()
        assert request["arguments"] == undone.request_value()
        assert request["result"] == undone.result_value()
    assert run.entries.filter(compensates__isnull=False).count() == 3


def test_by_default_what_was_done_is_kept():
    run = started(graph=kept)
    assert (run.status, run.error_kind, happened) == ("failed", "permanent", ["booked flight"])


def test_a_run_with_nothing_to_undo_fails_at_once():
    bare = Graph("bare", state=Trip, on_failure="compensate")

    @bare.node
    def only(run, state):
        run.call(tell.compensate, arguments={"to": "x"})
        refuse()

    with registered(bare):
        run = started(graph=bare)
    assert (run.status, kinds(run)[-1]) == ("failed", "fail")


@pytest.mark.parametrize(("verdict", "kind"), [("reject", "rejected"), ("", "expired")])
def test_a_rejection_and_a_deadline_that_the_node_does_not_catch_undo_as_well(verdict, kind):
    asking = Graph("asking-trip", state=Trip, on_failure="compensate")

    @asking.node
    def ask(run, state):
        run.call(book, what="flight")
        run.call(tell, to="bob", approve=Ask("Tell bob?", due=timedelta(hours=1)))

    with registered(asking):
        run = started(graph=asking)
        answer(run, verdict=verdict) if verdict else pass_time(3601)
        drive(run)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", kind)
    assert happened == ["booked flight", "cancelled FLIGHT"]
    are_sound(run)


def test_tries_that_are_used_up_and_the_step_limit_undo():
    endless = Graph("endless", state=Trip, on_failure="compensate", max_steps=2)

    @endless.node(then="again")
    def again(run, state):
        run.call(book, what="flight")

    with registered(endless):
        limited = started(graph=endless)
        drive(limited)
    assert (limited.status, limited.error_kind) == ("failed", "loop_limit")
    assert happened == ["booked flight"] * 2 + ["cancelled FLIGHT"] * 2
    run = started("retry")
    assert (run.status, run.ending) == ("retrying", "")
    pass_time(70)
    drive(run)
    assert (run.status, run.ending, run.error_kind) == ("running", "failed", "exhausted")
    drive(run)
    assert run.status == "failed"


@pytest.mark.parametrize("kind", ["poison", "diverged", "bad_state"])
def test_a_run_of_which_it_is_not_known_what_it_did_keeps_it(kind):
    run = start("trip", {"then": "ask"})
    claimed = claim(run)
    claimed.run()
    answer(run, verdict="reject")
    held = claim(run)
    held.lease.fail(kind, "no")
    run.refresh_from_db()
    assert (run.status, run.ending, run.error_kind) == ("failed", "", kind)
    assert happened == ALL_DONE


def test_no_node_is_called_and_no_answer_is_taken_while_it_is_undone():
    run = start("trip", {"then": "ask"})
    drive(run)
    run.cancel("olga", "enough", compensate=True)
    entry = run.entries.get(kind="interrupt")
    assert (entry.status, run.status) == ("cancelled", "running")
    with pytest.raises(Conflict):
        answer_closed(run, entry)
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    assert (run.status, run.step) == ("cancelled", 1)


def answer_closed(run: Run, entry: LedgerEntry) -> None:
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        entry.answer(locked, {"payload": None}, "ada", now, now)


def test_an_answer_that_was_not_taken_yet_can_be_taken_back_no_more():
    run = started("gate")
    entry = answer(run, undo=8)
    run.cancel("olga", "enough", compensate=True)
    with pytest.raises(Conflict, match="Too late"):
        undo(run, entry)
    pass_time(9)
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    are_sound(run)


def test_a_large_result_is_given_back_whole():
    given = []

    @tool(kind="write", compensate=lambda result: given.append(result))
    def print_out(pages: int) -> str:
        return "page " * pages

    large = Graph("large-trip", state=Trip, on_failure="compensate")

    @large.node
    def make(run, state):
        run.call(print_out, pages=20_000)
        refuse()

    with registered(large):
        run = go_on(start(large, {}), large)
    assert (run.status, len(given[0])) == ("failed", 100_000)
    run.refresh_from_db()
    are_sound(run)


# -- what it rules out ------------------------------------------------------------------------------------------


def test_once_it_has_begun_no_repair_takes_the_run():
    run = started("ask")
    run.cancel("olga", "enough", compensate=True)
    with pytest.raises(Conflict, match="undoing what it did"):
        run.migrate("olga", "now")


def test_a_compensation_is_refused_by_the_database_if_there_is_one_already():
    run = started()
    drive(run)
    again = run.entries.filter(compensates__isnull=False).first()
    again.pk, again.key, again.idempotency_key = None, "another", None
    with pytest.raises(IntegrityError), transaction.atomic():
        again.save(force_insert=True)


def test_an_entry_made_to_look_undone_is_found():
    run = started(graph=kept)
    run.entries.filter(name="book").update(status="compensated")
    run.refresh_from_db()
    assert "is compensated, and no compensation of it is done" in first_bad_row(run)


def test_ending_is_a_word_of_live_runs_alone():
    run = started(graph=kept)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(ending="failed")
