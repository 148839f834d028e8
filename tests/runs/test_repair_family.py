"""A parent that is repaired, and its children: it takes them up as they stand, and starts none a second time."""

from __future__ import annotations

import pytest
from django.db import transaction
from pydantic import BaseModel

from runs import Child, Graph, Permanent, Retry, start
from runs.engine import clock
from runs.engine.family import cancel_children, cancel_now
from runs.errors import Conflict
from runs.models import Run
from tests.runs.driving import are_sound, registered
from tests.runs.families import GRAPHS, Part, children_of, drive_all, leaf, slow, waiter
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.fixture(autouse=True)
def families_known():
    with registered(*GRAPHS, keyed, letting_go, patient):
        yield


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


def test_what_a_child_had_spent_when_it_failed_stays_so_for_its_parent_after_a_repair():
    spender, reader = Graph("repair-spender", state=Part), Graph("repair-reader", state=Log)

    @spender.node(retry=Retry(attempts=1))
    def use_tokens(run, state):
        run.spend(tokens=10)
        if state.name == "bad":
            raise Permanent("it is bad")
        run.spend(tokens=5, usd="0.5")

    @reader.node
    def read_later(run, state):
        child = run.start(spender, {"name": "bad"})
        run.wait_for("begun")
        [end] = run.join(child)
        state.log.append(f"{end.spent.tokens} tokens, {end.spent.usd} USD")

    with registered(spender, reader):
        drive_all(run := start(reader, {}))
        [child] = children_of(run)
        child.retry("olga", "it is good now", state={"name": "good"})
        drive_all(run)
        assert Run.objects.get(pk=child.pk).status == "completed"
        run.signal("begun")
        drive_all(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["10 tokens, 0 USD"])
    are_sound(run, child)


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
