"""A limit on starts counts each run when it is taken for the first time, by whatever way it came there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from runs import Graph, chores, start
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.models import Checkpoint, Run
from tests.runs.driving import drive, pass_time, registered
from tests.runs.states import Log
from tests.runs.test_limits import limit, queued, slow, taken

pytestmark = pytest.mark.django_db(transaction=True)

slower = Graph("slow", 2, state=Log, queue="slow")
family = Graph("limited-family", state=Log)


@slower.node
def work(run: Any, state: Log) -> None:
    state.log.append("done")


@slower.migrate(1)
def from_the_first(state: Any, node: str) -> Any:
    return state, node


@family.node
def begin_three(run: Any, state: Log) -> None:
    children = [run.start(slow, {"log": ["wait"]}, key=f"{{run_id}}:{number}") for number in range(3)]
    state.log += [end.status for end in run.join(*children)]


@pytest.fixture(autouse=True)
def known():
    with registered(slow, family):
        yield
    clock.AHEAD = timedelta()


def first_claims() -> dict[Any, Any]:
    """When each run of the queue was taken for the first time."""
    found: dict[Any, Any] = {}
    for claim in Checkpoint.objects.filter(kind="claim", run__queue="slow").order_by("at"):
        found.setdefault(claim.run_id, claim.at)
    return found


def repaired(run: Run) -> None:
    run.cancel("olga", "not now")
    run.retry("olga", "now")


def migrated(run: Run) -> None:
    with registered(slower):
        run.migrate("olga", "before the deploy")


@pytest.mark.parametrize("kind", ["starts", "starts_a_lane"])
@pytest.mark.parametrize("brought", [repaired, migrated])
def test_a_run_that_had_not_begun_begins_once_it_is_repaired_or_migrated(kind, brought):
    """It is running then, but nobody has taken it yet."""
    limit(**{kind: 2}, per_seconds=60)
    runs = queued("a", times=5)
    for run in runs[1:]:
        brought(run)
    with registered(slower):
        for seconds in (0, 30, 31, 61):
            pass_time(seconds)
            for one in taken(Claimer("w")):
                one.run()
    starts = sorted(first_claims().values())
    assert len(starts) == 5
    close = [later - one for one, later in zip(starts, starts[2:], strict=False)]
    assert min(close) >= timedelta(seconds=60), close


def test_what_had_begun_is_not_counted_again_when_it_is_repaired():
    limit(starts=1, per_seconds=3600)
    (run,) = queued(input={"log": ["wait"]})
    drive(run)
    repaired(run)
    (other,) = queued()
    (again,) = taken(Claimer("w"))
    assert again.lease.run_id == run.pk
    again.run()
    assert taken(Claimer("w")) == []
    pass_time(3601)
    (late,) = taken(Claimer("w"))
    assert late.lease.run_id == other.pk


def test_children_that_a_repaired_parent_takes_up_count_once_each():
    """One had begun when the parent was cancelled, two had not."""
    limit(starts=1, per_seconds=60)
    parent = start(family, {})
    drive(parent)
    children = list(parent.children.order_by("id"))
    (first,) = taken(Claimer("w"))
    first.run()
    parent.cancel("olga", "not now")
    chores.do_due()
    assert {child.status for child in Run.objects.filter(parent=parent)} == {"cancelled"}
    parent.retry("olga", "now")
    drive(parent)
    at_first = first_claims()
    for seconds in (1, 30, 31, 61):
        pass_time(seconds)
        for one in taken(Claimer("w")):
            one.run()
    starts = first_claims()
    assert starts.keys() == {child.pk for child in children}
    assert at_first.items() <= starts.items()
    moments = sorted(starts.values())
    assert all(later - one >= timedelta(seconds=60) for one, later in zip(moments, moments[1:], strict=False))
