"""Repairs where others are concerned: children, a parent, and what a run undoes."""

from __future__ import annotations

import pytest
from django.db import transaction

from runs import Graph, start
from runs.engine.family import cancel_children, cancel_now
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import LedgerEntry, Run
from tests.runs.driving import drive, kinds, registered
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, slow
from tests.runs.states import Log
from tests.runs.travel import happened
from tests.runs.trips import ALL_DONE, ALL_UNDONE, kept, started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]

keyed = Graph("repair-keyed", state=Log)


@keyed.node(then="join")
def begin(run, state):
    child = run.start(slow, key="helper:{run_id}")
    state.log.append(child.id)
    state.log.append(run.wait_for("begun"))


@keyed.node
def join(run, state):
    [end] = run.join(run.start(slow, key="helper:{run_id}"))
    state.log.append(end.status)


letting_go = Graph("repair-detached", state=Log)


@letting_go.node
def let_go(run, state):
    child = run.start(slow, on_parent_end="detach")
    state.log.append(run.wait_for("begun"))
    [end] = run.join(child)
    state.log.append(end.status)


patient = Graph("repair-patient", state=Log)


@patient.node
def look_later(run, state):
    child = run.start(leaf, {"name": "bad"})
    run.wait_for("begun")
    [end] = run.join(child)
    state.log += [end.status, end.error_kind, end.error.splitlines()[0]]


late = Graph("repair-late", state=Log)


@late.node
def map_and_look(run, state):
    for end in run.map(leaf, [{"name": "bad"}, {"name": "bad"}], at_once=1):
        state.log += [end.status, end.error_kind]


@pytest.fixture(autouse=True)
def families_known():
    with registered(*GRAPHS, keyed, letting_go, patient, late):
        yield


def are_sound(*runs: Run) -> None:
    for run in runs:
        run.refresh_from_db()
        assert first_bad_row(run) is None


def test_a_child_that_was_cancelled_with_its_parent_stays_so_and_a_new_one_is_started():
    """Also under the author's key, and a later step finds the new one by it."""
    run = start(keyed, {})
    drive_all(run)
    run.cancel("ada", "stop")
    [first] = children_of(run)
    assert first.status == "cancelled"
    run.refresh_from_db()
    run.retry("olga", "go on")
    drive_all(run)
    first, second = children_of(run)
    assert (first.status, second.status) == ("cancelled", "waiting")
    run.signal("begun", "yes")
    drive_all(run)
    second.signal("go", "now")
    drive_all(run)
    run.refresh_from_db()
    assert (run.status, run.state_at()["log"]) == ("completed", [str(second.pk), "yes", "completed"])
    assert len(children_of(run)) == 2
    are_sound(run, *children_of(run))


@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_detached_child_is_found_again_and_not_started_twice(ends):
    """It went on while its parent had ended, and may have ended itself by then (R10)."""
    run = start(letting_go, {})
    drive_all(run)
    run.cancel("ada", "stop")
    [child] = children_of(run)
    assert child.status == "waiting"
    if ends == "before":
        child.signal("go", "now")
        drive_all(run)
    run.refresh_from_db()
    run.retry("olga", "go on")
    if ends == "after":
        child.signal("go", "now")
    run.signal("begun", "yes")
    drive_all(run)
    run.refresh_from_db()
    assert (run.status, run.state_at()["log"]) == ("completed", ["yes", "completed"])
    assert len(children_of(run)) == 1
    are_sound(run, child)


def test_a_child_is_repaired_and_its_parent_keeps_what_it_was_told():
    run = start(patient, {})
    drive_all(run)
    [child] = children_of(run)
    assert (child.status, child.told) == ("failed", "failed")
    child.retry("olga", "it is good now", state={"name": "good"})
    drive_all(run)
    child.refresh_from_db()
    assert (child.status, child.told, child.told_kind) == ("completed", "failed", "permanent")
    run.signal("begun")
    drive_all(run)
    run.refresh_from_db()
    assert run.state_at()["log"] == ["failed", "permanent", "Permanent: it is bad"]
    are_sound(run, child)


def test_one_of_many_is_repaired_before_the_last_one_has_ended_and_counts_as_it_was_told():
    run = start(late, {})
    drive(run)
    first, second = children_of(run)
    drive(first)
    assert first.status == "failed"
    first.refresh_from_db()
    first.retry("olga", "mended", state={"name": "good"})
    drive(first)
    assert first.status == "completed"
    drive_all(run)
    run.refresh_from_db()
    assert (run.status, run.state_at()["log"]) == ("completed", ["failed", "permanent"] * 2)
    are_sound(run, first, second)


def test_a_repair_waits_until_the_end_has_reached_the_children():
    run = start(keyed, {})
    drive_all(run)
    with transaction.atomic():  # as of a process that is killed right after the commit of its cancel
        locked, now = Run.objects.lock(run.pk)
        cancel_now(locked, now, actor="ada", reason="stop")
    with pytest.raises(Conflict, match="children of run .* are still being ended"):
        run.retry("olga", "go on")
    cancel_children(run.pk)
    [child] = children_of(run)
    child.retry("olga", "alone")
    assert child.status == "running"
    run.retry("olga", "go on")
    drive_all(run)
    assert [one.status for one in children_of(run)] == ["waiting", "waiting"]


def test_once_a_run_undoes_what_it_did_only_a_fork_goes_on():
    run = started()
    while run.status not in ("failed", "cancelled"):
        drive(run)
    for verb in (run.retry, run.skip, lambda by, why: run.move(by, why, to="arrange")):
        with pytest.raises(Conflict, match="it cannot go on. Fork it"):
            verb("olga", "go on")
    fork = run.fork("olga", "from the start", seq=0)
    happened.clear()
    drive(fork)
    assert happened == ALL_DONE, "with keys of its own: all of it is done anew"
    drive(fork)
    assert happened == ALL_DONE + ALL_UNDONE
    are_sound(run, fork)


def test_a_fork_does_not_undo_what_its_origin_did():
    run = started("ask")
    fork = run.fork("olga", "a second one")
    fork.cancel("ada", "no", compensate=True)
    drive(fork)
    assert (fork.status, happened) == ("cancelled", ALL_DONE)
    run.cancel("ada", "no", compensate=True)
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    are_sound(run, fork)


def test_a_failed_run_that_kept_what_it_did_can_be_cancelled_with_compensation():
    run = started(graph=kept)
    assert (run.status, happened) == ("failed", ["booked flight"])
    run.cancel("ada", "undo it", compensate=True)
    assert (run.status, run.ending, run.finished_at) == ("running", "cancelled", None)
    drive(run)
    assert (run.status, happened) == ("cancelled", ["booked flight", "cancelled FLIGHT"])
    assert (kinds(run)[-1], run.checkpoints.last().reason) == ("cancel", "undo it")
    assert LedgerEntry.objects.get(run=run, name="book").status == "compensated"
    with pytest.raises(Conflict, match="Fork it"):
        run.retry("olga", "go on")
    are_sound(run)
