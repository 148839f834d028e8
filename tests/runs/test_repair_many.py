"""Repairs around a map: each of many is done once, so many at a time, and counts as it was told."""

from __future__ import annotations

import pytest

from runs import Graph, Retry, start, tool
from runs.engine import boundaries, children
from runs.models import FanOut, Run, statuses
from tests.runs.driving import are_sound, drive, registered
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, slow
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.fixture(autouse=True)
def families_known():
    baked.clear()
    with registered(*GRAPHS, late):
        yield


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


def test_what_ends_while_many_are_taken_up_lets_no_more_begin_than_may_live(monkeypatch):
    """They are taken up in several commits; others drive what goes on already."""
    monkeypatch.setattr(children, "A_COMMIT", 2)
    with registered(bakery, oven):
        run = start(bakery, {"items": 12})
        drive(run)
        drive_all(run)
        run.refresh_from_db()
        run.cancel("ada", "stop")
        drive_all(run)
        run.refresh_from_db()
        run.retry("olga", "go on")
        lived, commits = [], 0

        def meanwhile(name: str) -> None:
            nonlocal commits
            if name != "take up child done":
                return
            commits += 1
            boundaries.on_boundary = None
            if commits == 3:
                for one in run.children.filter(status="waiting"):
                    one.signal("rise")
            drive_all(run)
            lived.append(alive(run))
            boundaries.on_boundary = meanwhile

        monkeypatch.setattr(boundaries, "on_boundary", meanwhile)
        drive(run)
        monkeypatch.setattr(boundaries, "on_boundary", None)
        assert commits > 6 and max(lived) == 2, lived
        for _ in range(20):
            assert alive(run) <= 2
            for one in run.children.filter(status="waiting"):
                one.signal("rise")
            drive_all(run)
        run.refresh_from_db()
        assert (run.status, run.state_at()["ends"]) == ("completed", ["completed"] * 12)
        assert sorted(baked) == list(range(12)), "each once"
        fan_out = FanOut.objects.get(entry__run=run)
        assert (fan_out.released, fan_out.passed, fan_out.completed) == (12, 12, 12)
        are_sound(run, *children_of(run))


def test_those_that_were_repaired_by_themselves_before_their_turn_count_once_when_they_end():
    """Their turn passes while they live already; it makes room for nobody."""
    with registered(bakery, oven):
        run = start(bakery, {"items": 14})
        drive(run)
        drive_all(run)
        run.refresh_from_db()
        run.cancel("ada", "stop")
        alone = children_of(run)[4:8]
        for one in alone:
            one.refresh_from_db()
            one.retry("olga", "this one only")
        drive_all(run)
        run.refresh_from_db()
        run.retry("olga", "go on")
        drive_all(run)
        for _ in range(2):  # the turn comes to them and passes them
            for one in run.children.filter(status="waiting").exclude(pk__in=[one.pk for one in alone]):
                one.signal("rise")
            drive_all(run)
        assert alive(run) >= len(alone)
        while alive(run):
            assert alive(run) <= 2 + sum(not Run.objects.get(pk=one.pk).ended for one in alone)
            for one in run.children.filter(status="waiting"):
                one.signal("rise")
            drive_all(run)
        run.refresh_from_db()
        assert (run.status, run.state_at()["ends"]) == ("completed", ["completed"] * 14)
        fan_out = FanOut.objects.get(entry__run=run)
        assert (fan_out.released, fan_out.passed, fan_out.completed) == (14, 14, 14)
        are_sound(run, *children_of(run))


def alive(run: Run) -> int:
    """How many of its children have begun and not ended."""
    return run.children.exclude(status__in=statuses.ENDED).exclude(status="created", wake_at=None).count()


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
