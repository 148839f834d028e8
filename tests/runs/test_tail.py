"""The tail of the tables: every committed row is seen once, in whatever order transactions end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from runs import Graph, start
from runs.engine.row_threads import CallThreads
from runs.live.gaps import MOST_GAPS, Horizon, Seen
from runs.live.listeners import REMEMBERED_SECONDS, Memory
from runs.live.tail import Tail
from runs.models import Run
from tests.approvals.cases import ask
from tests.runs.driving import drive, registered

note = Graph("note", operators="ops")


@note.node
def write(run, state):
    run.note("written")


# -- gaps, without a database -------------------------------------------------------------------------------


def test_what_is_past_the_end_is_new_once():
    seen = Seen(last=3)
    assert seen.take([4, 5]) == {4, 5}
    assert seen.take([4, 5, 6]) == {6}
    assert seen.take([]) == set()


def test_an_id_that_commits_late_is_asked_for_until_it_comes():
    seen = Seen(last=3)
    seen.take([4, 7])
    assert set(seen.missing) == {5, 6}
    assert seen.take([6]) == {6}
    assert set(seen.missing) == {5}
    assert seen.take([5]) == {5}
    assert seen.missing == {}


def test_a_gap_is_given_up_when_all_have_ended_that_may_fill_it():
    seen = Seen(last=3)
    seen.take([5], Horizon(oldest=90, next=100))  # whoever took 4 may not have a number yet
    seen.take([], Horizon(oldest=95, next=101))  # now it has one, below 101
    for oldest in (95, 100):
        seen.take([], Horizon(oldest=oldest, next=200))
        assert set(seen.missing) == {4}
    seen.take([], Horizon(oldest=101, next=300))
    assert seen.missing == {}


def test_a_gap_filled_in_the_very_look_that_would_give_it_up_is_seen():
    seen = Seen(last=3)
    seen.take([5])
    seen.take([], Horizon(oldest=95, next=101))
    assert seen.take([4], Horizon(oldest=101, next=300)) == {4}


def test_with_one_writer_at_a_time_nothing_is_waited_for():
    seen = Seen(last=3, in_order=True)
    assert seen.take([9]) == {9}
    assert seen.missing == {}


def test_a_sequence_that_leaps_does_not_fill_the_memory():
    seen = Seen()
    seen.take([10**9])
    assert len(seen.missing) == MOST_GAPS
    assert seen.take([10**9 - 1]) == {10**9 - 1}


# -- what is remembered for pages that are a moment older than their socket ----------------------------------


def test_memory_tells_what_came_after_a_moment():
    memory = Memory(begins_at=10.0)
    memory.add(11.0, {"run": {"a"}})
    memory.add(12.0, {"run": {"b"}, "approval": {"c"}})
    assert memory.since(10.5) == {"run": {"a", "b"}, "approval": {"c"}}
    assert memory.since(11.5) == {"run": {"b"}, "approval": {"c"}}
    assert memory.since(12.5) == {}


def test_memory_knows_how_far_back_it_reaches():
    memory = Memory(begins_at=10.0)
    assert memory.since(9.0) is None
    memory.add(11.0, {"run": {"a"}})
    memory.add(11.0 + REMEMBERED_SECONDS + 1, {"run": {"b"}})
    assert memory.since(10.5) is None
    assert memory.since(11.5) == {"run": {"b"}}


# -- the tables ----------------------------------------------------------------------------------------------


@pytest.fixture
def noted(transactional_db: None) -> Iterator[None]:
    """The graph is known, and its version recorded: two first starts at once would wait for each other."""
    with registered(note):
        start("note")
        yield


@pytest.fixture
def tail(transactional_db: None) -> Tail:
    """One that stands at the end of what is there."""
    standing = Tail()
    standing.look()
    return standing


@pytest.mark.django_db(transaction=True)
def test_the_first_look_finds_the_end_and_tells_nothing():
    with registered(note):
        start("note")
        tail = Tail()
        assert tail.look() == {}
        assert tail.look() == {}


@pytest.mark.django_db(transaction=True)
def test_every_checkpoint_names_its_run(tail):
    with registered(note):
        one, other = start("note"), start("note")
        assert tail.look() == {"run": {one.pk, other.pk}}
        drive(other)
        assert tail.look() == {"run": {other.pk}}
        assert tail.look() == {}


@pytest.mark.django_db(transaction=True)
def test_whatever_happens_to_an_approval_names_it_and_its_run(tail, ada):
    approval = ask()
    named = {"approval": {approval.pk}, "run": {approval.run_id}}
    assert tail.look() == named
    for act in (
        lambda: approval.comment(ada, "Hm."),
        lambda: approval.claim(ada),
        lambda: approval.decide(by=ada, verdict="approve"),
        lambda: approval.undo(ada),
    ):
        act()
        assert tail.look() == named
        approval.refresh_from_db()


@pytest.mark.django_db(transaction=True)
def test_more_rows_than_one_look_takes_come_with_the_next(tail, monkeypatch):
    monkeypatch.setattr("runs.live.tail.MOST_ROWS", 2)
    with registered(note):
        runs = {start("note").pk for _ in range(5)}
    found = set()
    for more in (True, True, False):
        found |= set(tail.look().get("run", ()))
        assert tail.has_more is more
    assert found == runs


@pytest.mark.django_db(transaction=True)
def test_rows_that_were_rolled_back_are_not_waited_for_on_sqlite_nor_for_ever(tail):
    with registered(note):
        with transaction.atomic():
            start("note")
            transaction.set_rollback(True)
        last = start("note")
        assert tail.look() == {"run": {last.pk}}
        all_gaps_are_given_up(tail)


def all_gaps_are_given_up(tail: Tail) -> None:
    """Soon: transactions of anybody on the server that were under way before it may have to end first."""
    until = time.monotonic() + 60
    while any(seen.missing for _source, seen in tail.ends):
        assert tail.look() == {} and time.monotonic() < until


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_commits_after_a_later_one_is_seen(noted, tail):
    with unfinished() as (early, finish):
        late = start("note")
        assert tail.look() == {"run": {late.pk}}
        for _look in range(5):
            assert tail.look() == {}  # and is not given up while it is under way
        finish(commit=True)
        assert tail.look() == {"run": {early}}
        assert all(not seen.missing for _source, seen in tail.ends)


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_gap_that_never_fills_is_given_up_after_its_rollback(noted, tail):
    with unfinished() as (_early, finish):
        late = start("note")
        assert tail.look() == {"run": {late.pk}}
        finish(commit=False)
        all_gaps_are_given_up(tail)


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_what_was_under_way_when_the_tail_began_is_seen_too(noted):
    with unfinished() as (early, finish):
        start("note")
        tail = Tail()
        tail.look()
        assert tail.look() == {}
        finish(commit=True)
        assert tail.look() == {"run": {early}}


@contextmanager
def unfinished() -> Iterator[tuple]:
    """A run started in a transaction of another connection: its id, and finish(commit=...)."""
    wrote, may_end, ends = threading.Event(), threading.Event(), {"commit": False}
    ids = []

    def write() -> None:
        try:
            with transaction.atomic():
                ids.append(start("note").pk)
                wrote.set()
                may_end.wait(30)
                transaction.set_rollback(not ends["commit"])
        finally:
            wrote.set()
            connection.close()

    writer = threading.Thread(target=write)

    def finish(commit: bool) -> None:
        ends["commit"] = commit
        may_end.set()
        writer.join(30)
        assert not writer.is_alive()

    writer.start()
    assert wrote.wait(30)
    try:
        yield ids[0], finish
    finally:
        may_end.set()
        writer.join(30)


@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_ids_that_are_given_again_are_seen():
    """SQLite gives the highest id again once its row is gone (docs/adr/0012)."""
    from runs.engine import triggers
    from runs.models import Checkpoint, LedgerEntry, Run

    with registered(note):
        drive(start(note, {}))
        tail = Tail()
        tail.look()
        last = Checkpoint.objects.latest("pk").pk
        triggers.remove()
        try:
            for table in (Checkpoint, LedgerEntry, Run):
                table.objects.all().delete()
        finally:
            triggers.install()
        run = start(note, {})
        assert Checkpoint.objects.latest("pk").pk <= last
        assert tail.look() == {"run": {run.pk}}
        assert tail.look() == {}
        drive(run)
        assert tail.look() == {"run": {run.pk}}


@pytest.mark.django_db(transaction=True)
def test_a_still_database_is_not_read_and_whatever_another_commits_is_seen(noted):
    """On both: the mark moves with every commit of another connection, and a look that failed is made again."""
    tail = Tail()
    tail.look_if_stirred()
    with CaptureQueriesContext(connection) as statements:
        while tail.look_if_stirred() or len(statements) > 1:  # PostgreSQL itself may have something to commit
            statements.initial_queries = len(connection.queries_log)
    assert len(statements) == 1
    for _again in range(3):
        run = elsewhere(lambda: start("note"))
        assert tail.look_if_stirred() == {"run": {run.pk}}
    run, look = elsewhere(lambda: start("note")), tail.look
    tail.look = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        tail.look_if_stirred()
    tail.look = look
    assert tail.look_if_stirred() == {"run": {run.pk}}


def elsewhere(act: Callable[[], Run]) -> Run:
    """Done by another connection, and committed."""
    with CallThreads() as other:
        return other.submit(act).result()
