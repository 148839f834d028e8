"""Long work is done in portions by time, so that nobody waits long for a run's row (on SQLite: for the database)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from runs import END, Graph, start
from runs.engine import boundaries, clock, portion, telling
from runs.engine.portion import FIRST, MOMENT_SECONDS, fitting
from runs.models import Checkpoint, LedgerEntry, Run
from runs.testing import go_on
from runs.work import bell
from tests.runs.driving import drive, registered
from tests.runs.families import GRAPHS, children_of, leaf, mapper
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

ONE_BY_ONE = [FIRST, 1, 1, 1]  # where a moment is over at once: nobody knew better when it began

several = Graph("portions-several", state=Log)
long = Graph("portions-long", state=Log)


@several.node
def start_and_wait(run, state):
    run.join(*(run.start(leaf, {"name": str(number)}) for number in range(sum(ONE_BY_ONE))))


@long.node(then=("again", END))
def again(run, state):
    state.log.append("x")
    return "again" if len(state.log) < sum(ONE_BY_ONE) else END


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(*GRAPHS, several, long):
        yield


@pytest.fixture
def a_moment_is_over_at_once(monkeypatch):
    monkeypatch.setattr(portion, "MOMENT_SECONDS", 0.0)


def commits(rows: QuerySet, moment: str) -> list[int]:
    """How many of the rows each transaction wrote, told by the time that it read after its lock."""
    return [count for _at, count in sorted(Counter(rows.values_list(moment, flat=True)).items())]


def mapped(count: int) -> Run:
    run = start(mapper, {"names": ["a"] * count})
    drive(run)
    return run


@given(
    st.integers(1, 10_000),
    st.floats(0, 100, allow_nan=False).filter(lambda seconds: seconds == 0 or seconds > 1e-9),
    st.integers(1, 10_000),
)
def test_a_portion_is_what_the_last_one_says_goes_into_a_moment(size, seconds, most):
    """Never none, or the work would not go on; never far more than was seen to go well."""
    fits = fitting(size, seconds, most)
    assert 1 <= fits <= most and fits <= 2 * size
    assert fits == 1 or fits * seconds / size <= MOMENT_SECONDS * (1 + 1e-9)
    if 2 * seconds <= MOMENT_SECONDS:
        assert fits == min(2 * size, most)


def test_where_children_are_made_quickly_more_are_made_in_the_next_commit(monkeypatch):
    """MISSION A19: a commit costs something of its own."""
    monkeypatch.setattr(portion, "MOMENT_SECONDS", 1_000.0)
    assert commits(mapped(35).children, "created_at") == [10, 20, 5]


def test_where_the_machine_is_slow_children_are_made_one_by_one(a_moment_is_over_at_once):
    run = mapped(sum(ONE_BY_ONE))
    assert commits(run.children, "created_at") == ONE_BY_ONE
    assert [child.item for child in children_of(run)] == list(range(sum(ONE_BY_ONE)))


def test_so_are_ends_told(a_moment_is_over_at_once, monkeypatch):
    run = start(several, {"log": []})
    drive(run)
    with monkeypatch.context() as killed:
        killed.setattr(telling, "tell", lambda parent_id: None)
        for child in children_of(run):
            drive(child)
    telling.tell_all(run.pk)
    assert commits(LedgerEntry.objects.filter(run=run, status="done"), "answered_at") == ONE_BY_ONE
    drive(run)
    assert run.status == "completed"


def test_so_are_children_cancelled_with_their_parent(a_moment_is_over_at_once):
    """R2."""
    run = mapped(sum(ONE_BY_ONE))
    run.cancel(by="ada", reason="enough")
    assert commits(run.children.filter(status="cancelled"), "finished_at") == ONE_BY_ONE
    assert run.cascade_at is None and not run.children.filter(finished_at=None).exists()


def test_so_is_a_run_emptied_that_is_erased(a_moment_is_over_at_once, monkeypatch):
    run = go_on(start(long, {"log": []}), long)
    full = Checkpoint.objects.filter(run=run).exclude(salt=b"")
    seen = [full.count()]
    monkeypatch.setattr(
        boundaries, "on_boundary", lambda at: seen.append(full.count()) if at == "erase some" else None
    )
    run.erase("asked for", "olga")
    emptied = [before - after for before, after in zip(seen, seen[1:], strict=False) if before > after]
    assert emptied[0] == FIRST and set(emptied[1:]) == {1} and full.count() == 0
    run.refresh_from_db()
    assert run.tombstone.erased_at is not None


def test_so_are_held_runs_moved_on(a_moment_is_over_at_once):
    for _ in range(sum(ONE_BY_ONE)):
        start(leaf, {"name": "a"})
    until = clock.now() + timedelta(minutes=1)
    with CaptureQueriesContext(connection) as written:
        assert bell._move_on(Run.objects.due(clock.now()), until) == sum(ONE_BY_ONE)
    assert sum(one["sql"].startswith("UPDATE") for one in written) == len(ONE_BY_ONE)
    assert {run.wake_at for run in Run.objects.all()} == {until}
