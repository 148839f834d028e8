"""Repairs where others are concerned: children, a parent, and what a run undoes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from pydantic import BaseModel

from runs import Ambiguous, Child, Graph, Permanent, Retry, start, tool
from runs.engine import clock
from runs.engine.family import cancel_children, cancel_now
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import FanOut, LedgerEntry, Run
from tests.runs.driving import drive, kinds, pass_call, registered
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, slow, waiter
from tests.runs.states import Log
from tests.runs.travel import happened
from tests.runs.trips import ALL_DONE, ALL_UNDONE, kept, started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]


class Kept(BaseModel):
    child: Child | None = None
    log: list[str] = []


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


baked: list[object] = []  # what was done outside


@tool(kind="write")
def bake(item: int) -> int:
    baked.append(item)
    return item


oven = Graph("repair-oven")


@oven.node(then="rest")
def begin_to_bake(run, state):
    run.call(bake, item=state["item"])


@oven.node
def rest(run, state):
    run.wait_for("rise")


bakery = Graph("repair-bakery")


@bakery.node
def bake_all(run, state):
    state["ends"] = [
        end.status for end in run.map(oven, [{"item": item} for item in range(state["items"])], at_once=2)
    ]


@tool(kind="write", limit=timedelta(seconds=5))
def be_unsure() -> str:
    baked.append("unsure")
    raise Ambiguous("no answer came")


unsure = Graph("repair-unsure", state=Log, operators="ops")


@unsure.node
def ask_for_it(run, state):
    state.log.append(run.call(be_unsure))


asker = Graph("repair-asker", state=Log)


@asker.node
def wait_for_it(run, state):
    state.log += [end.status for end in run.join(run.start(unsure))]


def unbook(result: str) -> None:
    baked.append("unbooked")


@tool(kind="write", compensate=unbook)
def book() -> str:
    baked.append("booked")
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


@pytest.fixture(autouse=True)
def families_known():
    baked.clear()
    with registered(*GRAPHS, keyed, letting_go, patient, late):
        yield


def are_sound(*runs: Run) -> None:
    for run in runs:
        run.refresh_from_db()
        assert first_bad_row(run) is None


def test_a_child_that_was_cancelled_with_its_parent_goes_on_with_it_and_none_is_started_anew():
    """R1, R10: what the child has done stays done. Also under the author's key, and a later step finds it by that."""
    run = start(keyed, {})
    drive_all(run)
    run.cancel("ada", "stop")
    [child] = children_of(run)
    assert child.status == "cancelled"
    run.refresh_from_db()
    run.retry("olga", "go on")
    drive_all(run)
    [child] = children_of(run)
    assert (child.status, child.told) == ("waiting", "")
    back = child.checkpoints.get(kind="repair")
    assert (back.actor, back.reason) == ("family", f"Its parent, run {run.short_id}, goes on.")
    run.signal("begun", "yes")
    drive_all(run)
    child.signal("go", "now")
    drive_all(run)
    run.refresh_from_db()
    assert (run.status, run.state_at()["log"]) == ("completed", [str(child.pk), "yes", "completed"])
    are_sound(run, *children_of(run))


@pytest.mark.parametrize("child_is", ["going on", "completed", "cancelled by somebody"])
def test_a_child_that_was_repaired_by_itself_is_taken_up_by_its_parent_as_it_stands(child_is):
    run = start(waiter, {})
    drive_all(run)
    run.cancel("ada", "stop")
    [child] = children_of(run)
    child.retry("olga", "alone")
    drive_all(run)
    if child_is == "completed":
        child.signal("go", "now")
        drive_all(run)
    if child_is == "cancelled by somebody":
        Run.objects.get(pk=child.pk).cancel("ada", "really")
    run.retry("olga", "go on")
    drive_all(run)
    if child_is == "going on":
        assert run.status == "waiting"
        child.signal("go", "now")
        drive_all(run)
    told = {"cancelled by somebody": ["cancelled"]}.get(child_is, ["completed", "now"])
    assert (run.status, run.state_at()["log"], len(children_of(run))) == ("completed", told, 1)
    are_sound(run, *children_of(run))


def test_many_go_on_as_they_stand_so_many_at_once_and_none_of_those_that_have_ended_runs_again():
    """A map that is cancelled in its middle, also twice: each item is done once."""
    with registered(bakery, oven):
        run = start(bakery, {"items": 7})
        drive(run)
        assert [one.wake_at is not None for one in children_of(run)] == [True, True] + [False] * 5
        for number in (0, 2, 3):
            drive(Run.objects.get(parent=run, item=number))
            Run.objects.get(parent=run, item=number).signal("rise")
            drive(Run.objects.get(parent=run, item=number))
        drive(Run.objects.get(parent=run, item=1))
        Run.objects.get(parent=run, item=5).cancel("ada", "burnt")  # before its turn
        for _ in range(2):
            run.refresh_from_db()
            run.cancel("ada", "stop")
            assert {one.status for one in children_of(run)} == {"completed", "cancelled"}
            run.refresh_from_db()
            run.retry("olga", "go on")
            drive(run)
            fan_out = FanOut.objects.get(entry__run=run)
            assert (fan_out.completed, fan_out.cancelled, fan_out.failed) == (3, 1, 0)
            alive = [
                one.item for one in children_of(run) if one.wake_at is not None or one.status == "waiting"
            ]
            assert alive == [1, 4], "two at a time"
        while run.status == "waiting":
            drive_all(run)
            for one in run.children.filter(status="waiting"):
                one.signal("rise")
            drive_all(run)
        ends = ["completed"] * 5 + ["cancelled", "completed"]
        assert (run.status, run.state_at()["ends"]) == ("completed", ends)
        assert sorted(baked) == [0, 1, 2, 3, 4, 6], "each once"
        are_sound(run, *children_of(run))


def test_many_under_an_authors_key_are_taken_up_by_a_retry_and_not_by_a_move():
    lines = Graph("keyed-lines", state=Log, operators="ops")

    @lines.node(retry=Retry(attempts=1))
    def only(run, state):
        state.log += [end.status for end in run.map(slow, [{}], key="many:{run_id}")]

    with registered(lines, slow):
        moved, retried = start(lines, {}), start(lines, {})
        for run in (moved, retried):
            drive_all(run)
            run.cancel("ada", "stop")
            run.refresh_from_db()
        moved.move("olga", "begin again", to="only")
        drive(moved)
        assert (moved.status, moved.error_kind) == ("failed", "permanent")
        assert "were cancelled in step 1: a retry takes them up, a move leaves them behind" in moved.error
        retried.retry("olga", "go on")
        drive_all(retried)
        assert retried.status == "waiting" and retried.children.get().status == "waiting"
        are_sound(moved, retried, *children_of(retried))


@pytest.mark.parametrize("how", ["retry", "move", "fork"])
def test_what_a_child_has_left_in_doubt_is_settled_before_it_could_be_done_again(how):
    """P3: it would be, by the child that goes on, or by one that a fork starts."""
    with registered(asker, unsure):
        run = start(asker, {})
        drive(run)
        [child] = children_of(run)
        drive(child)
        run.cancel("ada", "stop")
        run.refresh_from_db()
        again = {
            "retry": lambda: run.retry("olga", "go on"),
            "move": lambda: run.move("olga", "go on", to=run.node),
            "fork": lambda: run.fork("olga", "go on"),
        }[how]
        with pytest.raises(Conflict, match=rf"whether .*\({child.short_id}\) happened"):
            again()
        assert baked == ["unsure"]
        pass_call(5)
        entry = child.entries.get(kind="effect")
        with transaction.atomic():
            locked, now = Run.objects.lock(child.pk)
            entry.settle(locked, "olga", "happened", "it was", "", now)
        if how != "retry":
            return
        again()
        drive_all(run)
        assert (run.status, run.state_at()["log"], baked) == ("completed", ["completed"], ["unsure"])
        are_sound(run, *children_of(run))


def test_what_a_childs_child_has_left_in_doubt_is_settled_before_as_well():
    top = Graph("repair-top", state=Log)

    @top.node
    def wait_for_all(run, state):
        state.log += [end.status for end in run.join(run.start(asker))]

    with registered(top, asker, unsure):
        drive_all(run := start(top, {}))
        run.cancel("ada", "stop")
        for child in children_of(run):
            cancel_children(child.pk)
        doubted = Run.objects.get(graph=unsure.name)
        assert doubted.status == "cancelled" and doubted.entries.get(kind="effect").status == "in_doubt"
        run.refresh_from_db()
        with pytest.raises(Conflict, match=rf"\({doubted.short_id}\) happened"):
            run.retry("olga", "go on")


def test_a_child_of_an_earlier_step_goes_on_where_it_is_joined_for_the_first_time_after_the_repair():
    joining = Graph("repair-joining", state=Kept)

    @joining.node(then="join_later")
    def begin_one(run, state):
        state.child = run.start(slow)

    @joining.node
    def join_later(run, state):
        run.wait_for("more")
        state.log += [end.status for end in run.join(state.child)]

    with registered(joining):
        drive_all(run := start(joining, {}))
        run.cancel("ada", "stop")
        run.refresh_from_db()
        run.retry("olga", "go on")
        drive_all(run)
        run.signal("more")
        drive_all(run)
        [child] = children_of(run)
        assert (run.status, child.status) == ("waiting", "waiting")
        child.signal("go", "now")
        drive_all(run)
        assert (run.status, run.state_at()["log"]) == ("completed", ["completed"])
        are_sound(run, child)


@pytest.mark.parametrize("how", ["cancel", "fail"])
def test_a_parent_that_has_only_children_has_them_undo_what_they_did(how):
    """A14: also where the run itself did nothing that could be undone."""
    with registered(agency, booking):
        run = start(agency, {"fails": how == "fail"})
        drive_all(run)
        assert baked == ["booked"]
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
        assert (run.status, child.status, baked) == (ends[how], "cancelled", ["booked", "unbooked"])
        are_sound(run, child)


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
    Run.objects.filter(pk=run.pk).update(cascade_at=clock.now())  # as if it had others
    with pytest.raises(Conflict, match="The parent of run .* does not know its end yet"):
        child.retry("olga", "alone")
    Run.objects.filter(pk=run.pk).update(cascade_at=None)
    child.retry("olga", "alone")
    assert child.status == "running"
    run.retry("olga", "go on")
    drive_all(run)
    [child] = children_of(run)
    assert child.status == "waiting", "the one that is there"


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
