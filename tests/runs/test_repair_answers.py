"""What people and systems had answered, or were being asked, when a run ended: what a repair makes of it."""

from __future__ import annotations

import pytest

from runs import Permanent, start
from runs.models import LedgerEntry
from tests.runs.driving import answer, are_sound, drive, keys
from tests.runs.workshop import done, faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]


def test_a_gated_call_keeps_its_approval_if_the_same_is_proposed_and_is_proposed_anew_if_not():
    run = start("selling", {"item": "lamp"})
    drive(run)
    faults["lamp"] = [Permanent("no buyer")]
    answer(run)
    drive(run)
    assert run.status == "failed"
    run.retry("olga", "a buyer has come")
    drive(run)
    assert (run.status, done) == ("completed", ["sold lamp for 4"])
    again = LedgerEntry.objects.get(run=run, kind="effect", status="done")
    assert again.key.endswith(":r2") and again.decided_by.key == again.key.replace(":r2", "?")
    are_sound(run)

    done.clear()
    run = start("selling", {"item": "lamp"})
    drive(run)
    faults["lamp"] = [Permanent("no buyer")]
    answer(run)
    drive(run)
    run.retry("olga", "sell the table", state={"item": "table"})
    drive(run)
    assert (run.status, done) == ("waiting", []), "nobody has approved this"
    answer(run, verdict="edit", payload={"item": "table", "price": 9})
    drive(run)
    assert (run.status, done) == ("completed", ["sold table for 9"])
    are_sound(run)


def test_a_rejection_stands_over_a_retry_and_another_proposal_is_asked_anew():
    run = start("selling", {"item": "lamp"})
    drive(run)
    answer(run, verdict="reject", reason="keep it")
    drive(run)
    assert (run.status, run.error_kind) == ("failed", "rejected")
    run.retry("olga", "try")
    drive(run)
    assert (run.status, run.error_kind, done) == ("failed", "rejected", [])
    run.retry("olga", "sell another", state={"item": "table"})
    drive(run)
    assert run.status == "waiting"
    answer(run)
    drive(run)
    assert (run.status, done) == ("completed", ["sold table for 5"])
    are_sound(run)


def test_what_a_cancel_closed_is_asked_anew_and_what_was_answered_stays():
    run = start("workshop-asking", {})
    drive(run)
    answer(run, "colour")
    drive(run)
    assert run.status == "waiting"
    run.cancel("ada", "too early")
    run.retry("olga", "not too early")
    drive(run)
    assert keys(run) | {"paid#1": "cancelled", "paid#1~2": "open", "colour": "done"} == keys(run)
    run.signal("paid", "in full")
    drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["WOOD", "approve", "in full"])
    assert len(done) == 1
    are_sound(run)
    assert "colour~2" not in keys(run)


def test_an_answer_that_could_still_be_undone_became_final_with_the_end_and_is_taken_by_the_retry():
    run = start("workshop-asking", {})
    drive(run)
    entry = answer(run, "colour", undo=3600)
    run.cancel("ada", "too early")
    run.retry("olga", "not too early")
    drive(run)
    assert keys(run) | {"colour": "done", "paid#1": "open"} == keys(run), "it is not waited for"
    entry.refresh_from_db()
    assert entry.taken_at is not None
    are_sound(run)


def test_a_question_that_a_cancel_closed_is_asked_anew():
    run = start("workshop-asking", {})
    drive(run)
    run.cancel("ada", "too early")
    run.retry("olga", "not too early")
    drive(run)
    assert keys(run) | {"colour": "cancelled", "colour~2": "open"} == keys(run)
    are_sound(run)
