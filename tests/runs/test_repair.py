"""A run that has failed, or was cancelled, is repaired: retried, skipped, moved, closed (cases R1, D5, R3, O2)."""

from __future__ import annotations

import pytest

from runs import Graph, Permanent, start
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry, Remark, Run
from tests.runs.driving import are_sound, drive, keys, kinds, pass_time, registered
from tests.runs.workshop import done, failed, faults, under

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]


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
    are_sound(run)


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
    are_sound(run)


def test_a_given_state_takes_the_place_of_the_runs_and_the_fresh_request_goes_out():
    run = failed()
    run.retry("olga", "a table will do", state={"item": "table", "log": ["kept"]})
    assert run.state_at() == {"item": "table", "note": "", "log": ["kept"]}
    drive(run)
    assert (done, under[1]) == (["wood", "table"], f"make:{run.pk}:r2")
    assert run.state_at()["log"] == ["kept", "WOOD", "TABLE", "varnished", "table measured"]
    are_sound(run)


def test_a_skipped_node_counts_as_left_and_its_key_goes_on_counting():
    run = failed()
    run.skip("olga", "made by hand", state={"item": "chair", "log": ["by hand"]})
    assert (run.node, run.step, run.status) == ("deliver", 1, "running")
    drive(run)
    assert (run.status, run.step, done[1:]) == ("completed", 2, [])
    assert run.state_at()["log"] == ["by hand", "chair measured"]
    are_sound(run)


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
    are_sound(run)

    run = failed_at_delivery()
    run.skip("olga", "it fits", to="__end__")
    assert (run.status, run.step, run.wake_at, run.node) == ("completed", 2, None, "deliver")
    assert kinds(run)[-3:] == ["fail", "repair", "complete"]
    assert run.finished_at is not None
    are_sound(run)


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
    are_sound(run)


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
    for nobody in (None, 7, "", " "):
        with pytest.raises(Invalid, match="Say who does it"):
            run.retry(nobody, "why not")
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
    are_sound(run)
    run.retry("olga", "somebody does")
    assert run.closed_at is None
    drive(run)
    assert run.status == "completed"
    with pytest.raises(Conflict, match="only a failed run can be closed"):
        run.close("olga", "again")
    are_sound(run)


def test_a_failed_run_is_cancelled_and_can_be_retried_even_then():
    run = failed()
    run.cancel("ada", "no more")
    assert (run.status, kinds(run)[-2:]) == ("cancelled", ["fail", "cancel"])
    are_sound(run)
    run.retry("olga", "once more")
    drive(run)
    assert run.status == "completed"
    are_sound(run)


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
    are_sound(run)
    are_sound(fork)


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
    are_sound(run)


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
    are_sound(run)
