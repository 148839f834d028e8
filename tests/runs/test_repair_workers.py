"""A repair and the workers that had the run before: one that is still at it, and those that it killed."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from runs import Graph, start
from runs.core.outcomes import Lost
from runs.engine.claim import MOST_DEATHS
from runs.models import Run
from tests.runs.driving import are_sound, claim, drive, keys, kinds, pass_lease, pass_time, registered
from tests.runs.workshop import done, faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]

PATIENCE_SECONDS = 60.0


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
    are_sound(run)


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
    are_sound(run)
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
    are_sound(run)
