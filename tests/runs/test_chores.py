"""Due work beside runs: each row is taken once at a time, what fails is due again, and shifts and bell see to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from runs import chores
from runs.engine import clock
from runs.engine.shift import Shift
from runs.models import Worker
from runs.work.bell import Bell
from tests.at_once import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def done(monkeypatch) -> Iterator[list[str]]:
    """The only chore: workers' rows by the time they were seen; `done` are the names it was called for."""
    monkeypatch.setattr(chores, "_chores", {})
    calls: list[str] = []

    def do(name: str) -> None:
        calls.append(name)
        if name.startswith("faulty"):
            raise ValueError("no")
        Worker.objects.filter(pk=name).update(seen_at=clock.now() + timedelta(days=1))

    chores.also(chores.Chore("count", lambda: Worker.objects.filter(host="elsewhere"), "seen_at", do))
    yield calls
    clock.AHEAD = timedelta()


def row(name: str, due: timedelta = -timedelta(seconds=1)) -> None:
    now = clock.now()
    Worker.objects.create(
        name=name, host="elsewhere", boot_id="b", pid=1, started_at=now, seen_at=now + due, serves="[]"
    )


def test_what_is_due_is_done_the_longest_due_first_and_once(done):
    row("b", due=-timedelta(minutes=1))
    row("a", due=-timedelta(minutes=2))
    row("later", due=timedelta(minutes=1))
    assert chores.are_due(clock.now())
    assert chores.do_due() == 2
    assert done == ["a", "b"]
    assert not chores.are_due(clock.now())
    assert chores.do_due() == 0


def test_what_fails_keeps_no_other_from_being_done_and_is_due_again_after_the_lease(done):
    row("faulty", due=-timedelta(minutes=2))
    row("good")
    assert chores.do_due() == 1
    assert done == ["faulty", "good"]
    assert chores.do_due() == 0
    clock.AHEAD = chores.LEASE + timedelta(seconds=1)
    chores.do_due()
    assert done == ["faulty", "good", "faulty"]


def test_of_two_workers_at_the_same_moment_one_takes_a_row(done):
    for number in range(20):
        row(f"r{number}")
    at_once(chores.do_due, chores.do_due)
    assert sorted(done) == sorted(f"r{number}" for number in range(20))


def test_asked_to_stop_the_rest_stays_due(done):
    for name in "abc":
        row(name)
    assert chores.do_due(over=lambda: len(done) == 2) == 2
    assert chores.are_due(clock.now())


def test_a_shift_does_what_is_due_before_it_ends(done):
    """Also the shortest one, as `tick` makes it; a shift for one run leaves the rest alone."""
    row("a")
    Shift(only="00000000-0000-7000-8000-000000000000", linger=0).work()
    assert done == []
    Shift(seconds=20, steps=1, linger=0).work()
    assert done == ["a"]


def test_the_bell_rings_for_a_chore(done):
    rung: list[str] = []
    bell = Bell()
    bell._ring = lambda: rung.append("rung")
    bell.look()
    assert rung == []
    row("a")
    bell.tended_at = 0.0  # its next look is one at all that it tends
    bell.look()
    assert rung == ["rung"]
