"""What a run undoes as it ends, and repairs of it: nothing goes on from there but a fork."""

from __future__ import annotations

import pytest

from runs import Graph, Permanent, start, tool
from runs.engine.family import cancel_children
from runs.errors import Conflict
from runs.models import LedgerEntry
from tests.runs.driving import are_sound, drive, kinds, registered
from tests.runs.families import children_of, drive_all
from tests.runs.states import Log
from tests.runs.travel import happened
from tests.runs.trips import ALL_DONE, ALL_UNDONE, kept, started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]


def unbook(result: str) -> None:
    happened.append("unbooked")


@tool(kind="write", compensate=unbook)
def book() -> str:
    happened.append("booked")
    return "booked"


booking = Graph("repair-booking", state=Log)


@booking.node
def book_and_wait(run, state):
    run.call(book)
    run.wait_for("go")


agency = Graph("repair-agency", on_failure="compensate")


@agency.node
def book_all(run, state):
    child = run.start(booking)
    if state["fails"]:
        run.wait_for("news")
        raise Permanent("it rains")
    run.join(child)


@pytest.mark.parametrize("how", ["cancel", "fail"])
def test_a_parent_that_has_only_children_has_them_undo_what_they_did(how):
    """A14: also where the run itself did nothing that could be undone."""
    with registered(agency, booking):
        run = start(agency, {"fails": how == "fail"})
        drive_all(run)
        assert happened == ["booked"]
        if how == "cancel":
            run.cancel("ada", "undo all", compensate=True)
        else:
            run.signal("news")
        drive_all(run)
        cancel_children(run.pk)  # the chore
        drive_all(run)
        [child] = children_of(run)
        ends = {"cancel": "cancelled", "fail": "failed"}
        child.refresh_from_db()
        assert (run.status, child.status, happened) == (ends[how], "cancelled", ["booked", "unbooked"])
        are_sound(run, child)


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
