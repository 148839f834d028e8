"""A run that is cancelled undoes what it did, if that is wished; also what was under way, and what its children did."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from runs import Ambiguous, Graph, Transient, start
from runs.core.outcomes import Lost
from runs.engine.family import cancel_children
from runs.errors import Conflict
from runs.models import Remark, Run
from tests.at_once import at_once
from tests.runs.driving import answer, are_sound, claim, drive, kinds, pass_call, registered
from tests.runs.travel import Trip, book, happened, moods
from tests.runs.trips import ALL_DONE, ALL_UNDONE, started, statuses, trip

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]


@pytest.mark.parametrize("then", ["ask", "retry"])
def test_a_waiting_and_a_retrying_run_are_cancelled_with_and_without_compensation(then):
    for compensate in (True, False):
        happened.clear()
        run = started(then)
        assert run.status in ("waiting", "retrying")
        run.cancel("user olga", "ordered twice", compensate=compensate)
        drive(run)
        assert happened == ALL_DONE + (ALL_UNDONE if compensate else [])
        assert (run.status, run.ending, run.wake_at) == ("cancelled", "", None)
        last = run.checkpoints.order_by("-seq").first()
        assert (last.kind, last.actor, last.reason) == ("cancel", "user olga", "ordered twice")
        are_sound(run)


def test_nothing_is_undone_under_a_fork_that_goes_on_with_it():
    run = started("ask")
    fork = run.fork("olga", "the other way")
    further = fork.fork("olga", "and another")
    fork.cancel("olga", "not that one")
    with pytest.raises(
        Conflict, match=f"Run {further.short_id} is a fork of run {run.short_id}.*Cancel it first"
    ):
        run.cancel("olga", "enough", compensate=True)
    assert (run.status, happened) == ("waiting", ALL_DONE)
    further.cancel("olga", "nor that one")
    run.cancel("olga", "enough", compensate=True)
    drive(run)
    assert (run.status, happened) == ("cancelled", ALL_DONE + ALL_UNDONE)
    are_sound(run)


above = Graph("trip-above")


@above.node
def send_two(run, state):
    children = [run.start(trip, {"then": "ask"}, key=f"{{run_id}}:{number}") for number in range(2)]
    run.join(*children)


def test_nothing_is_undone_under_a_fork_of_a_child_that_is_undone_with_its_parent():
    """A child that has ended keeps what it did, so its fork is in nobody's way."""
    with registered(above):
        run = start(above, {})
        drive(run)
        child, over = run.children.order_by("id")
        drive(child)
        drive(over)
        over.cancel("olga", "not this one")
        over.fork("olga", "on its own")
        fork = child.fork("olga", "the other way")
        with pytest.raises(
            Conflict, match=f"Run {fork.short_id} is a fork of run {child.short_id}.*run {run.short_id}"
        ):
            run.cancel("olga", "enough", compensate=True)
        run.refresh_from_db()
        assert run.status == "waiting"
        fork.cancel("olga", "not that one")
        happened.clear()
        run.cancel("olga", "enough", compensate=True)
        cancel_children(run.pk)
        drive(child)
        assert (child.status, happened) == ("cancelled", ALL_UNDONE)


def test_a_created_run_has_nothing_to_undo():
    run = start("trip", {})
    run.cancel("olga", "enough", compensate=True)
    assert (run.status, kinds(run)) == ("cancelled", ["start", "cancel"])


def test_a_cancel_in_the_middle_of_a_node_takes_the_run_and_nothing_of_the_old_worker_lands():
    """R1: the call under way is found out before anything is undone; the state is as the last step left it."""
    run = start("trip", {"then": "call"})
    held = claim(run, "old")

    moods["bob"] = [lambda: Run.objects.get(pk=run.pk).cancel("olga", "enough", compensate=True)]
    assert isinstance(held.run(), Lost)
    run.refresh_from_db()
    late = run.entries.get(name="tell", step=2, status="open")
    assert Remark.objects.get(entry=late).kind == "late_result"
    drive(run, "new")
    assert (run.status, happened) == ("waiting", [*ALL_DONE, "told bob"]), "it may still be under way"
    pass_call()
    drive(run, "new")
    asked = run.entries.get(kind="interrupt", status="open")
    answer(run, asked.key, "respond", payload={"outcome": "happened", "result": None})
    drive(run, "new")
    assert happened[4:] == ["told bob otherwise", *ALL_UNDONE]
    assert (run.status, run.step, run.state_at()["log"]) == ("cancelled", 1, ["FLIGHT", "HOTEL"])
    are_sound(run)


def test_a_write_that_did_not_happen_is_not_sent_and_not_undone():
    moods["bob"] = [Ambiguous("no answer")]
    run = started("call")
    run.cancel("olga", "enough", compensate=True)
    pass_call()
    drive(run)
    answer(run, verdict="respond", payload={"outcome": "not_happened"})
    drive(run)
    assert happened == [*ALL_DONE, "told bob", *ALL_UNDONE]
    assert list(run.entries.filter(name="tell").order_by("id").values_list("status", flat=True)) == [
        "compensated",
        "cancelled",
    ]
    are_sound(run)


def test_a_question_about_a_write_stays_open_over_a_cancel():
    moods["bob"] = [Ambiguous("no answer")]
    run = started("call")
    pass_call()
    drive(run)
    asked = run.entries.get(kind="interrupt")
    run.cancel("olga", "enough", compensate=True)
    asked.refresh_from_db()
    assert asked.status == "open"
    drive(run)
    assert run.status == "waiting"
    answer(run, asked.key, "respond", payload={"outcome": "happened", "result": None})
    drive(run)
    assert (run.status, run.entries.filter(kind="interrupt").count()) == ("cancelled", 1)
    are_sound(run)


def test_cancelling_again_is_refused_and_cancelling_without_compensation_ends_it_at_once():
    moods["cancel hotel"] = [Transient("busy", retry_after=60)]
    run = started()
    drive(run)
    assert (run.status, run.ending) == ("retrying", "failed")
    with pytest.raises(Conflict, match="already"):
        run.cancel("olga", "enough", compensate=True)
    run.cancel("olga", "leave the rest")
    assert (run.status, run.ending, run.wake_at) == ("cancelled", "", None)
    assert happened == [*ALL_DONE, "told ada otherwise"]
    assert statuses(run)["book 1"] == "done"
    assert run.checkpoints.get(kind="cancel").reason == "leave the rest"
    are_sound(run)


def test_the_command_cancels_with_compensation(capsys):
    run = started("ask")
    call_command("cancel", str(run.pk), "--reason", "enough", "--compensate")
    assert "undoing what it did" in capsys.readouterr().out
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE


def test_of_two_cancels_at_the_same_moment_one_begins_and_the_other_is_refused():
    for _ in range(5):
        happened.clear()
        run = started("ask")
        ends = at_once(
            lambda run=run: Run.objects.get(pk=run.pk).cancel("olga", "one", compensate=True),
            lambda run=run: Run.objects.get(pk=run.pk).cancel("bob", "two", compensate=True),
        )
        assert sum(isinstance(end, Conflict) for end in ends) == 1
        drive(run)
        assert (run.status, happened) == ("cancelled", ALL_DONE + ALL_UNDONE)
        are_sound(run)


@pytest.mark.parametrize("compensate", [True, False])
def test_children_that_end_with_their_parent_undo_what_they_did_if_it_does(compensate):
    """Whether or not the parent has ended by then."""
    parcels = Graph("trip-of-many", state=Trip, operators="ops")

    @parcels.node
    def send_ahead(run, state):
        run.call(book, what="van")
        run.join(run.start(trip, {"then": "ask", "things": ["flight"]}), run.start(trip, {"things": []}))

    with registered(parcels):
        run = started(graph=parcels)
        asking, idle = run.children.order_by("id")
        drive(asking)
        run.cancel("olga", "enough", compensate=compensate)
        drive(run)
        assert run.status == "cancelled"
        cancel_children(run.pk)
        for child in (asking, idle):
            child.refresh_from_db()
            assert child.ending == ("cancelled" if compensate and child == asking else "")
            drive(child)
            assert child.status == "cancelled"
            are_sound(child)
    undone = ["cancelled VAN", "told ada otherwise", "cancelled FLIGHT"]
    assert happened == ["booked van", "booked flight", "told ada", *(undone if compensate else [])]
    run.refresh_from_db()
    assert (run.cascade_at, asking.told) == (None, "cancelled")
