"""A run that has failed, or was cancelled, is repaired: retried, skipped, moved (cases R1, D5, R3, O2)."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from runs import Graph, Permanent, start
from runs.core.outcomes import Lost
from runs.engine.claim import MOST_DEATHS
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry, Remark, Run
from tests.runs.driving import answer, claim, drive, kinds, pass_call, pass_lease, pass_time, registered
from tests.runs.workshop import ALL, done, faults, under

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def an_empty_workshop():
    done.clear()
    under.clear()
    faults.clear()
    with registered(*ALL):
        yield


def failed(graph: str = "workshop", item: str = "chair", **given) -> Run:
    faults.setdefault(item, []).append(Permanent("the saw is broken"))
    run = start(graph, {"item": item, **given})
    drive(run)
    assert run.status == "failed", run.error
    return run


def is_sound(run: Run) -> None:
    run.refresh_from_db()
    assert first_bad_row(run) is None


def keys(run: Run) -> dict[str, str]:
    return dict(LedgerEntry.objects.filter(run=run).order_by("id").values_list("key", "status"))


def test_a_failed_run_is_retried_and_nothing_that_was_done_is_done_again():
    """The failed call is asked anew as `:r2`, also with its explicit key; what was done keeps its result."""
    run = failed()
    run.retry("user olga", "the saw is mended")
    assert (run.status, run.step, run.attempt, run.error, run.error_kind) == ("running", 0, 0, "", "")
    assert (run.finished_at, run.leased_by) == (None, None)
    drive(run)
    assert (done, under[1]) == (["wood", "chair"], f"make:{run.pk}:r2")
    assert (run.status, run.state_at()["log"]) == (
        "completed",
        ["WOOD", "CHAIR", "varnished", "chair measured"],
    )
    assert kinds(run)[:4] == ["start", "claim", "fail", "repair"]
    told = run.checkpoints.get(kind="repair")
    assert (told.actor, told.reason, told.step) == ("user olga", "Retry: the saw is mended", 0)
    assert run.checkpoints.get(kind="fail").reason.startswith("EffectFailed"), (
        "what had gone wrong stays told"
    )
    assert keys(run)["make:{run_id}"] == "failed" and keys(run)["make:{run_id}:r2"] == "done"
    resolved = LedgerEntry.objects.get(run=run, key="make:{run_id}:r2").idempotency_key
    assert resolved == f"make:{run.pk}:r2"
    is_sound(run)


def test_a_second_and_a_third_repair_count_on():
    run = failed()
    for _again in range(2):
        faults["chair"] = [Permanent("broken again")]
        run.retry("olga", "once more")
        drive(run)
        assert run.status == "failed"
    run.retry("olga", "once more")
    drive(run)
    assert run.status == "completed"
    made = [f"make:{{run_id}}{end}" for end in ("", ":r2", ":r3", ":r4")]
    assert [key for key in keys(run) if key.startswith("make")] == made
    assert (done, under[1]) == (["wood", "chair"], f"make:{run.pk}:r4")
    is_sound(run)


def test_a_given_state_takes_the_place_of_the_runs_and_the_fresh_request_goes_out():
    run = failed()
    run.retry("olga", "a table will do", state={"item": "table", "log": ["kept"]})
    assert run.state_at() == {"item": "table", "note": "", "log": ["kept"]}
    drive(run)
    assert (done, under[1]) == (["wood", "table"], f"make:{run.pk}:r2")
    assert run.state_at()["log"] == ["kept", "WOOD", "TABLE", "varnished", "table measured"]
    is_sound(run)


def test_a_skipped_node_counts_as_left_and_its_key_goes_on_counting():
    run = failed()
    run.skip("olga", "made by hand", state={"item": "chair", "log": ["by hand"]})
    assert (run.node, run.step, run.status) == ("deliver", 1, "running")
    drive(run)
    assert (run.status, run.step, done[1:]) == ("completed", 2, [])
    assert run.state_at()["log"] == ["by hand", "chair measured"]
    is_sound(run)


def test_a_node_with_several_successors_is_skipped_to_a_named_one_and_to_the_end_at_once():
    def failed_at_delivery() -> Run:
        run = start("workshop", {})
        faults["measure chair"] = [Permanent("no rule")]
        drive(run)
        assert (run.status, run.node) == ("failed", "deliver")
        return run

    run = failed_at_delivery()
    with pytest.raises(Invalid, match="deliver, present, END"):
        run.skip("olga", "it fits")
    with pytest.raises(Invalid, match="choose one of deliver, present, END"):
        run.skip("olga", "it fits", to="make")
    run.skip("olga", "it fits", to="present")
    drive(run)
    assert (run.status, run.state_at()["log"][-1]) == ("completed", "wrapped")
    is_sound(run)

    run = failed_at_delivery()
    run.skip("olga", "it fits", to="__end__")
    assert (run.status, run.step, run.wake_at, run.node) == ("completed", 2, None, "deliver")
    assert kinds(run)[-3:] == ["fail", "repair", "complete"]
    assert run.finished_at is not None
    is_sound(run)


def test_a_run_is_moved_to_any_node_and_an_explicit_key_that_failed_before_counts_on():
    run = failed()
    run.move("olga", "wrap it first", to="present")
    assert (run.node, run.step) == ("present", 1)
    drive(run)
    assert run.status == "completed"

    run = failed(item="stool")
    before = len(done)
    run.move("olga", "from the start", to="make")
    drive(run)
    assert done[before:] == ["wood", "stool"], "a step of its own does all that is its own"
    assert under[-1] == f"make:{run.pk}:r2", (
        "and what failed under the author's key in an earlier step counts on"
    )
    assert run.status == "completed"
    is_sound(run)


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
    is_sound(run)

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
    is_sound(run)


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
    is_sound(run)


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
    is_sound(run)
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
    is_sound(run)


def test_a_question_that_a_cancel_closed_is_asked_anew():
    run = start("workshop-asking", {})
    drive(run)
    run.cancel("ada", "too early")
    run.retry("olga", "not too early")
    drive(run)
    assert keys(run) | {"colour": "cancelled", "colour~2": "open"} == keys(run)
    is_sound(run)


def test_cancelled_in_the_middle_of_a_node_and_retried_the_node_runs_again():
    """R1: nothing of the first worker's late result is a step's result."""
    run = start("workshop", {})
    held = claim(run, "old")
    faults["measure chair"] = [lambda: Run.objects.get(pk=run.pk).cancel("ada", "stop")]
    assert isinstance(held.run(), Lost)
    run.refresh_from_db()
    assert (run.status, run.step, kinds(run)[-1]) == ("cancelled", 1, "cancel")
    assert run.remarks.filter(kind="late_result").exists()
    run.retry("olga", "go on")
    held = claim(run, "new")
    faults["measure chair"] = [lambda: Run.objects.get(pk=run.pk).cancel("ada", "stop again")]
    held.run()
    run.refresh_from_db()
    run.retry("olga", "go on once more")
    drive(run, "newer")
    assert (run.status, run.step) == ("completed", 2)
    assert run.state_at()["log"] == ["WOOD", "CHAIR", "varnished", "chair measured"]
    assert [link.actor for link in run.checkpoints.filter(kind__in=("step", "complete"))] == ["old", "newer"]
    assert done == ["wood", "chair"]
    is_sound(run)


@pytest.mark.parametrize("outcome, built", [("happened", 2), ("not_happened", 3), ("give_up", 3)])
def test_what_is_in_doubt_is_settled_before_a_repair(outcome, built):
    """A call under way when its run was cancelled; what a person says of it decides whether it is made again."""
    run = start("workshop", {})
    held = claim(run, "old")
    faults["chair"] = [lambda: Run.objects.get(pk=run.pk).cancel("ada", "stop")]
    held.run()
    run.refresh_from_db()
    for verb in (run.retry, run.skip, lambda by, why: run.move(by, why, to="make")):
        with pytest.raises(Conflict, match=r"make:\{run_id\} happened is in doubt; settle it first"):
            verb("olga", "go on")
    pass_call()
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        entry = LedgerEntry.objects.get(run=run, key="make:{run_id}")
        entry.settle(locked, "olga", outcome, "CHAIR", "looked there", now)
    run.refresh_from_db()
    run.retry("olga", "go on")
    drive(run, "new")
    assert (run.status, len(done)) == ("completed", built)
    assert run.state_at()["log"][:2] == ["WOOD", "CHAIR"]
    is_sound(run)


def test_what_stands_against_a_repair_is_said():
    run = start("workshop", {})
    with pytest.raises(Conflict, match="only a failed or cancelled run"):
        run.retry("olga", "why not")
    drive(run)
    with pytest.raises(Conflict, match="is completed"):
        run.move("olga", "why not", to="make")
    run = failed()
    for reason in ("", "  "):
        with pytest.raises(Invalid, match="Say why"):
            run.retry("olga", reason)
    with pytest.raises(Invalid, match="Too long"):
        run.retry("olga", "x" * 10_001)
    with pytest.raises(Invalid, match="'attic': choose one of make, deliver, present"):
        run.move("olga", "why not", to="attic")
    with pytest.raises(Invalid, match="does not fit"):
        run.retry("olga", "why not", state={"item": ["no", "text"]})
    assert Run.objects.get(pk=run.pk).seq == run.seq


def test_a_closed_run_is_no_dead_letter_and_can_be_repaired_later():
    run = failed()
    assert run in Run.objects.dead_letters()
    run.close("olga", "nobody wants it")
    assert (run.status, run in Run.objects.dead_letters()) == ("failed", False)
    with pytest.raises(Conflict, match="closed already"):
        run.close("olga", "again")
    is_sound(run)
    run.retry("olga", "somebody does")
    assert run.closed_at is None
    drive(run)
    assert run.status == "completed"
    with pytest.raises(Conflict, match="only a failed run can be closed"):
        run.close("olga", "again")
    is_sound(run)


def test_a_failed_run_is_cancelled_and_can_be_retried_even_then():
    run = failed()
    run.cancel("ada", "no more")
    assert (run.status, kinds(run)[-2:]) == ("cancelled", ["fail", "cancel"])
    is_sound(run)
    run.retry("olga", "once more")
    drive(run)
    assert run.status == "completed"
    is_sound(run)


def test_what_was_archived_or_erased_is_not_repaired_and_an_archived_run_can_be_forked():
    run = failed()
    run.close("olga", "nobody wants it")
    run.archive("long ago", "iris")
    for verb in (run.retry, run.skip, run.cancel):
        with pytest.raises(Conflict, match="is archived; a fork of it can go on"):
            verb("olga", "after all")
    fork = run.fork("olga", "after all")
    drive(fork)
    assert (fork.status, done) == ("completed", ["wood", "chair"])
    run.erase("asked for", "iris")
    for verb in (run.retry, run.fork, run.cancel):
        with pytest.raises(Conflict, match="is erased"):
            verb("olga", "after all")
    is_sound(run)
    is_sound(fork)


def test_a_version_that_only_a_migration_leads_on_can_be_retried_as_it_is_and_one_that_nobody_has_cannot():
    """R7, R8: a worker migrates it before anything else."""
    old, new = Graph("repair-versions", 1), Graph("repair-versions", 2)

    @old.node
    def first(run, state):
        raise Permanent("a fault of this version")

    @new.node
    def second(run, state):
        state["by"] = "version 2"

    @new.migrate(1)
    def renamed(state, node):
        return state, "second"

    with registered(old):
        run = start(old, {})
        drive(run)
    with pytest.raises(Conflict, match="cannot go on: it needs deploy"):
        run.retry("olga", "mended")
    with registered(new):
        for verb in (
            lambda: run.retry("olga", "mended", state={}),
            lambda: run.move("olga", "mended", to="second"),
        ):
            with pytest.raises(Conflict, match="it can only be retried as it is"):
                verb()
        run.retry("olga", "mended")
        pass_time(10)
        drive(run)
    assert (run.status, run.version, run.state_at()) == ("completed", 2, {"by": "version 2"})
    is_sound(run)


def test_the_node_runs_again_and_completes_while_its_first_execution_still_hangs():
    """R1: the worker that was cancelled in the middle of it comes back last, and nothing of it lands."""
    began, may_end, outcomes = threading.Event(), threading.Event(), []
    slow = Graph("repair-slow")

    @slow.node
    def think(run, state):
        is_first = not began.is_set()
        began.set()
        if is_first:
            assert may_end.wait(PATIENCE_SECONDS)
        state["thought"] = run.once("by", lambda: "the first" if is_first else "the second")

    def old_worker() -> None:
        outcomes.append(claim(run, "old").run())
        connection.close()

    with registered(slow):
        run = start(slow, {})
        thread = threading.Thread(target=old_worker)
        thread.start()
        try:
            assert began.wait(PATIENCE_SECONDS)
            run.cancel("ada", "it hangs")
            run.retry("olga", "once more")
            drive(run, "new")
            assert (run.status, run.state_at()) == ("completed", {"thought": "the second"})
        finally:
            may_end.set()
            thread.join(PATIENCE_SECONDS)
    assert isinstance(outcomes[0], Lost)
    before = run.seq
    is_sound(run)
    assert (run.seq, run.state_at(), keys(run)) == (before, {"thought": "the second"}, {"by#1": "done"})
    assert run.remarks.get(kind="late_result").worker == "old"


def test_who_is_repaired_as_poison_has_as_many_deaths_before_it_as_a_new_run():
    """A13, R3: what it was taken for is over, so one more silent end makes it a suspect, and not poison."""
    run = start("workshop", {})
    while run.status != "failed":
        claim(run, "doomed")
        pass_lease()
        pass_time(60)
        run.refresh_from_db()
        if run.deaths + run.alone > MOST_DEATHS:
            claim(run, "who finds it")
            run.refresh_from_db()
    assert (run.error_kind, run.deaths) == ("poison", MOST_DEATHS + 1)
    run.retry("olga", "what killed them is mended")
    assert (run.deaths, run.silent, run.alone, run.attempt) == (0, 0, False, 0)
    claim(run, "doomed once more")
    pass_lease()
    found = claim(run, "who finds it")
    run.refresh_from_db()
    assert (run.status, run.deaths, run.silent) == ("running", 0, 1)
    found.run()
    run.refresh_from_db()
    assert (run.status, run.deaths, run.silent, done) == ("completed", 0, 0, ["wood", "chair"])
    is_sound(run)


def test_what_is_done_and_not_asked_for_any_more_after_a_repair_gets_a_remark():
    """The state that was given leads another way: nothing is undone, but whoever looks at the ledger is told."""
    run = start("workshop-careful", {})
    faults["wood"] = [Permanent("no wood")]
    faults["chair"] = [Permanent("the saw is broken")]
    drive(run)
    assert (run.status, done) == ("failed", ["sold scrap for 1"])
    run.retry("olga", "there is wood now", state={"item": "stool", "note": "no scrap"})
    drive(run)
    assert not Remark.objects.filter(kind="passed_over").exists(), "it has gone the same way"

    run = start("workshop-either", {"item": "table"})
    faults["table"] = [Permanent("the saw is broken")]
    faults["last"] = [Permanent("the saw is broken")]
    drive(run)
    assert (run.status, done[-1]) == ("failed", "sold scrap for 1")
    run.retry("olga", "it is sold by hand", state={"item": "chair", "note": "skip"})
    drive(run)
    assert run.status == "completed", run.error
    told = Remark.objects.get(run=run, kind="passed_over")
    assert told.entry.name == "sell" and "look whether what it did instead is done beside it" in told.body
    is_sound(run)
