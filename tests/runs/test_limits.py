"""Queues' limits: never above them with eight claimers, each lane in its turn; and graphs that are stopped."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import Graph, start
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.shift import Shift
from runs.errors import Conflict, Invalid, Missing
from runs.models import Checkpoint, GraphStop, LaneUse, QueueLimit, Run
from runs.testing import kill_at_statements
from runs.work.bell import Bell
from tests.at_once import at_once
from tests.runs.disturbing import commits_of, where_to_kill
from tests.runs.driving import drive, pass_lease, pass_time, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

slow = Graph("slow", state=Log, queue="slow")
quick = Graph("quick", state=Log)


@slow.node
@quick.node
def work(run: Any, state: Log) -> None:
    if state.log == ["wait"]:
        run.wait_for("go")
    state.log.append("done")


@pytest.fixture(autouse=True)
def known():
    with registered(slow, quick):
        yield
    clock.AHEAD = timedelta()


def limit(**numbers: int) -> QueueLimit:
    return QueueLimit.objects.put("slow", **numbers)


def queued(lane: str = "", times: int = 1, graph: Graph = slow, **options: Any) -> list[Run]:
    return [start(graph, options.pop("input", {}), lane=lane, **options) for _ in range(times)]


def taken(claimer: Claimer, most: int = 100) -> list[Drive]:
    """What it claims one after the other, without driving it."""
    drives = []
    while len(drives) < most and (found := claimer.claim(alone=not drives)) is not None:
        drives.append(Drive(*found))
    return drives


def lanes(drives: list[Drive]) -> list[str]:
    return [Run.objects.get(pk=one.lease.run_id).lane for one in drives]


# -- how many at once ---------------------------------------------------------------------------------------


def test_eight_claimers_never_hold_more_than_the_limit_and_never_more_of_a_lane():
    """Counted inside of each node, while others claim."""
    held: Counter[str] = Counter()
    most: Counter[str] = Counter()
    counting = threading.Lock()
    counted = Graph("counted", state=Log, queue="slow")

    @counted.node
    def count(run: Any, state: Log) -> None:
        lane = state.log[0]
        with counting:
            held.update([lane, "all"])
            most[lane], most["all"] = max(most[lane], held[lane]), max(most["all"], held["all"])
        Run.objects.filter(pk=run.id).exists()  # a moment in which others claim
        with counting:
            held.subtract([lane, "all"])

    def work_through(name: str) -> int:
        claimer, driven = Claimer(name), 0
        while Run.objects.live().filter(graph="counted").exists():
            if (found := claimer.claim(alone=True)) is not None:
                Drive(*found).run()
                driven += 1
        return driven

    limit(at_once=3, at_once_a_lane=2)
    with registered(counted):
        for lane in "ab":
            for _ in range(20):
                start(counted, {"log": [lane]}, lane=lane)
        driven = at_once(*(lambda n=n: work_through(f"w{n}") for n in range(8)))
    assert all(isinstance(one, int) for one in driven), driven
    assert sum(driven) == 40
    assert most["all"] <= 3 and most["a"] <= 2 and most["b"] <= 2
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}


def test_what_is_over_the_limit_waits_and_is_taken_when_one_ends():
    limit(at_once=2)
    queued(times=4)
    claimer = Claimer("w1")
    first, second = taken(claimer)
    first.run()
    (third,) = taken(claimer)
    second.run()
    third.run()
    assert len(taken(claimer)) == 1


def test_a_run_that_waits_or_is_put_off_holds_no_place():
    limit(at_once=1)
    (run,) = queued(input={"log": ["wait"]})
    (other,) = queued()
    drive(run)
    assert run.status == "waiting"
    drive(other)
    assert other.status == "completed"
    run.signal("go")
    (held,) = taken(Claimer("w1"))
    assert held.lease.run_id == run.pk


def test_the_place_of_a_dead_worker_is_free_after_its_lease():
    limit(at_once=1)
    run, other = queued(times=2)
    assert len(taken(Claimer("dead"))) == 1
    assert taken(Claimer("w2")) == []
    pass_lease()
    driven = Claimer("w3")
    while (found := driven.claim(alone=True)) is not None:
        Drive(*found).run()
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}


def test_other_queues_go_on_beside_a_full_one():
    limit(at_once=1)
    queued(times=3)
    queued(graph=quick, times=3)
    assert sorted(one.lease.graph.name for one in taken(Claimer("w1"))) == ["quick"] * 3 + ["slow"]


def test_a_limit_that_is_lifted_or_raised_holds_from_the_next_second():
    limit(at_once=1)
    queued(times=5)
    claimer = Claimer("w1")
    assert len(taken(claimer)) == 1
    limit(at_once=2)
    assert len(taken(claimer)) == 1
    QueueLimit.objects.all().delete()
    pass_time(1.1)
    assert len(taken(claimer)) == 3


# -- lanes --------------------------------------------------------------------------------------------------


def test_lanes_take_turns_however_much_one_of_them_has_to_do():
    """Fairness: a lane that comes last is served next; and nothing starves, with or without a lane."""
    limit(at_once=100)
    queued("noisy", times=6)
    queued("a", times=2)
    queued("", times=2)
    assert Counter(lanes(taken(Claimer("w1"), most=3))) == {"noisy": 1, "a": 1, "": 1}
    queued("late")
    assert set(lanes(taken(Claimer("w2"), most=4))) == {"late", "noisy", "a", ""}
    assert lanes(taken(Claimer("w3"))) == ["noisy"] * 4
    assert LaneUse.objects.count() == 4


def test_within_a_lane_the_priority_counts_and_every_fourth_claim_takes_the_oldest():
    limit(at_once=100)
    low = queued("a", times=3, priority=3)
    urgent = queued("a", times=4, priority=0)
    found = [one.lease.run_id for one in taken(Claimer("w1"))]
    order = [*urgent[:3], low[0], urgent[3], *low[1:]]
    assert found == [run.pk for run in order], "the fourth one is the oldest, though of low priority"


def test_a_child_is_in_its_parents_lane():
    parent = Graph("parent", state=Log)

    @parent.node
    def go(run: Any, state: Log) -> None:
        run.start(slow, {})

    with registered(parent):
        run = start(parent, {}, lane="customer 7")
        drive(run)
    assert run.children.get().lane == "customer 7"


# -- how many in a time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["starts", "starts_a_lane"])
def test_never_more_start_in_any_period_however_the_claims_fall(kind):
    """Not only in the periods of a calendar: wherever a minute begins, no more than three starts lie in it."""
    limit(**{kind: 3}, per_seconds=60)
    queued("a", times=20)
    for step in (0, 45, 16, 3, 55, 20, 41, 30, 1, 29):
        pass_time(step)
        for one in taken(Claimer("w")):
            one.run()
    starts = list(Checkpoint.objects.filter(kind="claim").order_by("at").values_list("at", flat=True))
    assert len(starts) >= 9
    close = [later - one for one, later in zip(starts, starts[3:], strict=False)]
    assert min(close) >= timedelta(seconds=60), close


def test_other_numbers_hold_at_once_also_for_what_has_started_before():
    limit(starts_a_lane=3, per_seconds=60)
    queued("a", times=4)
    assert len(taken(Claimer("w1"), most=2)) == 2
    limit(starts_a_lane=2, per_seconds=60)
    assert taken(Claimer("w2")) == []
    limit(starts_a_lane=3, per_seconds=60)
    assert len(taken(Claimer("w3"))) == 1


def test_what_has_begun_goes_on_while_no_more_may_start():
    limit(starts=1, per_seconds=3600)
    run, _ = queued(times=2, input={"log": ["wait"]})
    drive(run)
    run.signal("go")
    while (found := Claimer("w2").claim(alone=True)) is not None:
        Drive(*found).run()
    assert sorted(Run.objects.values_list("status", flat=True)) == ["completed", "created"]


def test_so_many_of_each_lane_start_in_a_period():
    limit(starts_a_lane=1, per_seconds=60)
    for lane in "abc":
        queued(lane, times=3)
    assert sorted(lanes(taken(Claimer("w1")))) == ["a", "b", "c"]
    pass_time(30)
    assert taken(Claimer("w2")) == []
    pass_time(31)
    assert sorted(lanes(taken(Claimer("w3")))) == ["a", "b", "c"]


def test_lanes_that_were_not_served_for_a_day_are_forgotten():
    limit(starts_a_lane=5, per_seconds=36 * 3600)
    queued("a")
    taken(Claimer("w1"))
    LaneUse.forget_old(clock.now() + timedelta(hours=30))
    assert LaneUse.objects.exists(), "its start still counts"
    LaneUse.forget_old(clock.now() + timedelta(days=2))
    assert not LaneUse.objects.exists()


# -- stopped ------------------------------------------------------------------------------------------------


def test_a_stopped_graph_is_taken_by_nobody_within_two_seconds_and_goes_on_when_it_is_lifted():
    queued(times=4)
    claimer = Claimer("w1")
    (held,) = taken(claimer, most=1)
    GraphStop.objects.stop("slow", "olga", "the provider is down")
    pass_time(2)
    assert taken(claimer) == []
    held.run()
    assert Run.objects.get(pk=held.lease.run_id).status == "completed", "what was driven goes on"
    queued(graph=quick)
    assert len(taken(claimer)) == 1
    GraphStop.objects.lift("slow")
    pass_time(2)
    assert len(taken(claimer)) == 3


def test_a_stop_has_a_reason_and_is_told_to_who_comes_second():
    stop = GraphStop.objects.stop
    with pytest.raises(Invalid) as refused:
        stop("slow", "olga", " ")
    assert set(refused.value.fields) == {"reason"}
    stop("slow", "olga", "the provider is down")
    with pytest.raises(Conflict, match="stopped by olga already: the provider is down"):
        stop("slow", "bob", "me too")
    GraphStop.objects.lift("slow")
    with pytest.raises(Missing):
        GraphStop.objects.lift("slow")


def test_a_runs_page_says_that_its_graph_is_stopped_and_its_lane(client, olga):
    (run,) = queued("customer 7", by=olga)
    client.force_login(olga)
    assert "is stopped" not in client.get(run.get_absolute_url()).content.decode()
    GraphStop.objects.stop("slow", "iris", "the provider is down")
    shown = client.get(run.get_absolute_url()).content.decode()
    assert "slow is stopped" in shown and "iris has stopped its graph: the provider is down" in shown
    assert "customer 7" in shown


def test_nobody_is_rung_for_what_is_stopped_or_over_its_limit():
    rung: list[str] = []
    bell = Bell()
    bell._ring = lambda: rung.append("rung")
    limit(at_once=1)
    queued(times=2)
    assert len(taken(Claimer("w1"))) == 1
    bell.look()
    assert rung == []
    QueueLimit.objects.all().delete()
    GraphStop.objects.stop("slow", "olga", "the provider is down")
    pass_time(2)
    bell.look()
    assert rung == []
    GraphStop.objects.lift("slow")
    pass_time(2)
    bell.look()
    assert rung == ["rung"]


def test_a_shift_works_a_limited_queue_off_to_its_end():
    limit(at_once=1, at_once_a_lane=1)
    for lane in ("a", "b", ""):
        queued(lane, times=3)
    Shift(seconds=120, linger=0.5, runs_at_once=4).work()
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}


# -- kills --------------------------------------------------------------------------------------------------


def test_a_kill_at_any_statement_of_a_limited_claim_counts_it_with_the_claim_or_not_at_all():
    """E15: and the place is free again after the lease."""

    def prepare() -> tuple[str, Any]:
        LaneUse.objects.all().delete()
        limit(at_once=50, starts=50, starts_a_lane=50)
        QueueLimit.objects.update(window="")
        (run,) = queued("a")
        return str(run.pk), lambda: Claimer("w1").claim(alone=True, only=run.pk)

    def counted(run_id: str) -> tuple[bool, bool, bool]:
        return (
            Run.objects.filter(pk=run_id, leased_by="w1", status="running").exists(),
            QueueLimit.objects.exclude(window="").exists(),
            LaneUse.objects.filter(lane="a").exclude(window="").exists(),
        )

    seen = []

    def check(run_id: str, where: str) -> None:
        seen.append(counted(run_id))
        assert len(set(seen[-1])) == 1, where

    kill_at_statements(prepare, check, where_to_kill("a claim under limits", commits_of(prepare)))
    assert seen[0] == (False,) * 3 and seen[-1] == (True,) * 3


# -- what it costs ------------------------------------------------------------------------------------------


def test_a_claim_without_limits_asks_the_database_nothing_more():
    """The standing orders are looked up once a second, whatever is claimed."""
    queued(graph=quick, times=4)
    claimer = Claimer("w1")
    counts = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as queries:
            assert claimer.claim(alone=True) is not None
        counts.append(
            len([one for one in queries if "graphstop" in one["sql"] or "queuelimit" in one["sql"]])
        )
    assert counts == [1, 0, 0]


@pytest.mark.parametrize(
    "numbers", [{}, {"at_once": 0}, {"starts": -1}, {"at_once": 1, "per_seconds": 0}, {"at_once": "many"}]
)
def test_numbers_that_limit_nothing_are_refused(numbers):
    with pytest.raises(Invalid):
        limit(**numbers)
    assert not QueueLimit.objects.exists()


@pytest.mark.parametrize("lane", ["x" * 101, "a\x00b", "\ud800", 7])
def test_a_lane_that_no_column_holds_is_refused(lane):
    with pytest.raises(Invalid):
        start(quick, {}, lane=lane)


# -- many that are repaired at once ---------------------------------------------------------------------------


def test_runs_that_are_repaired_at_once_keep_to_the_limit_and_to_their_priority():
    """O3."""
    common, urgent = queued(times=4), queued(times=2, priority=0)
    for one in taken(Claimer("w0")):
        one.lease.fail("permanent", "no")
    limit(at_once=2)
    for run in Run.objects.order_by("pk"):
        run.retry("olga", "it is mended")
    first, second = taken(Claimer("w1")), taken(Claimer("w2"))
    assert {one.lease.run_id for one in first} == {run.pk for run in urgent} and second == []
    for one in first:
        one.run()
    assert len(taken(Claimer("w3"))) == 2
    assert {run.pk for run in common} == set(Run.objects.live().values_list("pk", flat=True))
