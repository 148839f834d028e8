"""E14, E15 of schedules: a kill, or an error of the database, at every statement leaves all of a verb or nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError

from runs.engine import clock
from runs.models import Run, Schedule
from runs.testing import kill_at_statements, moved_clock
from tests.runs.disturbing import commits_of, commits_something, fail_each_once, where_to_kill
from tests.runs.driving import registered
from tests.runs.faulty_schedules import LOOKED_AT, VERBS, daily, shape

pytestmark = pytest.mark.django_db(transaction=True)

SEVERAL_COMMITS = {"start_the_runs_of_three_slots"}  # one for each slot


@pytest.fixture(autouse=True)
def known():
    with registered(daily):
        yield
    daily.schedules.clear()
    clock.AHEAD = timedelta()


def ends(name: str) -> list:
    """The shapes before and after the verb."""
    with moved_clock():
        subject, act = VERBS[name]()
        before = shape(subject)
        act()
        return [before, shape(subject)]


def go_on(subject: str) -> None:
    """The next worker looks, at the moment at which the one before it did."""
    row = Schedule.objects.get(name=subject)
    with moved_clock() as moved:
        moved.move_to(LOOKED_AT[subject])
        row.fire()


def is_allowed(name: str, left, before, after) -> bool:
    return left in (before, after) or name in SEVERAL_COMMITS and before[-1] < left[-1] < after[-1]


def test_a_kill_at_any_statement_leaves_whole_slots_and_the_next_worker_starts_what_is_owed():
    """E15, R9: each slot has one run in the end, whoever was killed on the way."""
    for name in VERBS:
        before, after = ends(name)
        seen = []

        def check(subject, where, name=name, before=before, after=after, seen=seen):
            left = shape(subject)
            assert is_allowed(name, left, before, after), f"{name}, {where}: {left}"
            seen.append(left)
            if name.startswith("start"):
                go_on(subject)
                assert shape(subject) == after, f"{name}, {where}: the next worker makes up what is owed"

        with moved_clock():
            chosen = where_to_kill(name, commits_of(VERBS[name], done_before=True))
        statements = kill_at_statements(VERBS[name], check, chosen)
        assert 2 <= len(seen) <= statements + 1  # what left nothing changed is not looked at again
        assert (seen[0], seen[-1]) == (before, after), name


def test_a_database_that_fails_at_any_statement_starts_no_run_twice():
    """E14: also when the answer to a COMMIT is lost. What is not done is done when somebody looks again."""
    for name in VERBS:
        before, after = ends(name)

        def check(subject, where, name=name, before=before, after=after):
            left = shape(subject)
            assert is_allowed(name, left, before, after), f"{name}, {where}: {left}"
            if name.startswith("start"):
                go_on(subject)
                assert shape(subject) == after, f"{name}, {where}"

        with moved_clock():
            assert fail_each_once(VERBS[name], check, only=commits_something, in_a_row=1) > 1
            assert fail_each_once(VERBS[name], check) > 1


def test_there_is_one_run_for_a_slot_in_the_database_itself():
    """Two that disagree about what is dealt with are told apart by the run's key."""
    with moved_clock() as moved:
        made = Schedule.objects.make(daily.name, "twice", "0 * * * *")
        moved.move(timedelta(hours=1))
        first = Schedule.objects.get(pk=made.pk)
        assert len(first.fire()) == 1
        Schedule.objects.filter(pk=made.pk).update(done_until=made.done_until)
        assert made.fire() == []
    assert Run.objects.filter(graph=daily.name).count() == 1


def test_a_lost_answer_is_no_second_run(monkeypatch):
    """The first try has committed before its answer was lost."""
    with moved_clock() as moved:
        made = Schedule.objects.make(daily.name, "lost", "0 * * * *")
        moved.move(timedelta(hours=1))
        real, tries = Schedule._start, []

        def start_and_lose(self, *arguments):
            tries.append(real(self, *arguments))
            if len(tries) == 1:
                raise OperationalError("database is locked")
            return tries[-1]

        monkeypatch.setattr(Schedule, "_start", start_and_lose)
        made.fire()
    assert [len(one) for one in tries] == [1, 0]
    assert Run.objects.filter(graph=daily.name).count() == 1
