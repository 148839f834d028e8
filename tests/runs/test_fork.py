"""A fork begins where another run stood: with that run's state, and with what it had done in that step (A14, O2)."""

from __future__ import annotations

import pytest

from runs import Permanent, start
from runs.engine.forking import would_send
from runs.errors import Conflict, Invalid, Missing
from runs.models import LedgerEntry, Run
from tests.runs.driving import answer, are_sound, claim, drive, kinds
from tests.runs.workshop import done, faults, under

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]


def test_a_fork_of_a_failed_run_takes_over_what_its_step_has_done_and_goes_on_by_itself():
    faults["chair"] = [Permanent("the saw is broken")]
    run = start("workshop", {}, key="order 7", labels={"for": "ida"})
    drive(run)
    fork = run.fork("user olga", "with another saw")
    assert (fork.status, fork.step, fork.node, fork.root, fork.key) == ("created", 0, "make", fork.pk, None)
    assert (fork.origin, fork.origin_seq, fork.labels) == (run.pk, run.seq, run.labels)
    assert would_send(run) == []
    drive(fork)
    assert (fork.status, done, under[1]) == ("completed", ["wood", "chair"], f"make:{fork.pk}")
    copied = LedgerEntry.objects.get(run=fork, key__startswith="build:")
    of = LedgerEntry.objects.get(run=run, key=copied.key)
    assert (copied.copied_from, copied.idempotency_key, copied.result) == (of.pk, None, of.result)
    first = fork.checkpoints.get(seq=0)
    assert (first.kind, first.actor) == ("fork", "user olga")
    assert first.reason == f"From run {run.pk}, checkpoint {run.seq}: with another saw"
    run.refresh_from_db()
    assert (run.status, kinds(run)[-1]) == ("failed", "fail"), "the run itself stays as it was"
    are_sound(run, fork)


def test_a_fork_from_an_earlier_checkpoint_does_again_what_came_after_it_and_that_is_told_before():
    run = start("workshop", {})
    drive(run)
    assert run.status == "completed"
    assert would_send(run, 1) == [], "it takes over all that its step has done"
    fork = run.fork("olga", "once more", seq=1)
    drive(fork)
    assert (done, fork.status, fork.state_at()) == (["wood", "chair"], "completed", run.state_at())
    step = run.checkpoints.get(kind="step").seq
    fork = run.fork("olga", "only delivered anew", seq=step)
    assert (fork.node, fork.step) == ("deliver", 1)
    drive(fork)
    assert (fork.status, fork.step, len(done)) == ("completed", 2, 2)
    are_sound(run, fork)

    faults["measure lamp"] = [Permanent("lost")]
    run = start("workshop", {"item": "lamp"})
    drive(run)
    run.move("olga", "from the start", to="make", state={"item": "lamp"})
    drive(run)
    assert run.status == "completed", run.error
    assert [(one.step, one.key.partition(":")[0]) for one in would_send(run, 0)] == [(3, "build")]
    are_sound(run)


def test_a_fork_asks_people_anew_and_the_decision_stays_where_it_was_made():
    run = start("workshop-asking", {})
    drive(run)
    answer(run, "colour", verdict="reject", reason="none of them")
    drive(run)
    fork = run.fork("olga", "ask again")
    drive(fork)
    assert (fork.status, len(done)) == ("waiting", 1)
    assert LedgerEntry.objects.get(run=fork, kind="interrupt").status == "open"
    answer(fork, "colour")
    drive(fork)
    fork.signal("paid", "all")
    drive(fork)
    assert (fork.status, fork.state_at()["log"]) == ("completed", ["WOOD", "approve", "all"])
    run.refresh_from_db()
    assert (run.status, LedgerEntry.objects.get(run=run, key="colour").status) == ("waiting", "done")
    run.signal("paid", "some")
    drive(run)
    assert run.state_at()["log"] == ["WOOD", "reject", "some"]
    are_sound(run, fork)


def test_a_fork_takes_over_what_a_repair_had_asked_anew():
    run = start("workshop-asking", {})
    drive(run)
    answer(run, "colour")
    drive(run)
    run.cancel("ada", "wait")
    run.retry("olga", "go on")
    drive(run)
    run.signal("paid", "in full")
    drive(run)
    fork = run.fork("olga", "again", seq=run.seq - 1)
    drive(fork)
    assert (fork.status, fork.state_at()["log"], len(done)) == (
        "completed",
        ["WOOD", "approve", "in full"],
        1,
    )
    colour = fork.entries.get(key="colour")
    assert (colour.copied_from, fork.approvals.count()) == (run.entries.get(key="colour").pk, 0), (
        "it was paid on that"
    )
    are_sound(run, fork)


def test_a_call_that_people_approved_and_that_is_done_is_taken_over_without_asking():
    run = start("selling", {"item": "lamp"})
    drive(run)
    answer(run)
    drive(run)
    fork = run.fork("olga", "again", seq=run.seq - 1)
    drive(fork)
    assert (fork.status, done) == ("completed", ["sold lamp for 4"])
    are_sound(run, fork)


def test_what_stands_against_a_fork_is_said():
    run = start("workshop", {})
    held = claim(run, "old")
    faults["chair"] = [lambda: Run.objects.get(pk=run.pk).cancel("ada", "stop")]
    held.run()
    run.refresh_from_db()
    with pytest.raises(Conflict, match="is not known yet"):
        run.fork("olga", "again")
    with pytest.raises(Missing, match="no checkpoint 77"):
        run.fork("olga", "again", seq=77)
    with pytest.raises(Invalid, match="Say why"):
        run.fork("olga", " ")
    whole = start("workshop", {})
    drive(whole)
    with pytest.raises(Conflict, match="is its end"):
        whole.fork("olga", "again")
    whole.erase("asked for", "iris")
    with pytest.raises(Conflict, match="erased"):
        whole.fork("olga", "again", seq=0)
    assert Run.objects.count() == 2
