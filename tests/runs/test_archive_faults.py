"""E15 of the archive: killed, failed and read at any statement, each row is in one of two tables, and once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from runs import chores, start
from runs.engine import archiving, clock, moving
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import Archival, LedgerEntry, Remark, Run, Tombstone
from runs.models.archived import COLD, everywhere
from runs.testing import kill_at_statements, moved_clock
from runs.testing.faults import each_statement
from tests.amounts import IN_FULL, ON_POSTGRES, THOROUGH, dice
from tests.at_once import at_once
from tests.runs.disturbing import commits_of, commits_something, fail_each_once, where_to_kill
from tests.runs.driving import registered
from tests.runs.faulty_archive import VERBS, ended, ended_family, is_whole, small, where

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def known(settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {"archive_after_days": 365}
    with registered(small):
        yield


def commits(name: str) -> list[int]:
    """Of the many that a move is made of a developer's run takes a few."""
    found = commits_of(VERBS[name])
    return found if THOROUGH else sorted(dice(f"commits {name}").sample(found, min(2, len(found))))


@pytest.mark.parametrize("name", VERBS)
def test_a_kill_at_any_statement_loses_no_row_and_a_worker_goes_on_with_what_was_begun(name):
    stood = []

    def check(subject: str, at: str) -> None:
        run = Run.objects.get(pk=subject)
        rows = where(run)
        stood.append(sum(side == "cold" for table in rows for side in table.values()))
        assert all(rows) and first_bad_row(run) is None, at
        with moved_clock() as moved:
            moved.move(timedelta(hours=2))
            while chores.do_due():
                pass
        begun = Archival.objects.filter(run=run).exists()
        assert is_whole(run) if begun else not stood[-1], at
        assert [set(table) for table in where(run)] == [set(table) for table in rows], at
        assert all(first_bad_row(one) is None for one in Run.objects.filter(root=run.root)), at

    assert kill_at_statements(VERBS[name], check, where_to_kill(name, commits(name))) > 8
    assert stood == sorted(stood) and (stood[-1] or name == "archive_by_age")


@pytest.mark.parametrize("name", VERBS)
def test_a_database_that_fails_at_any_statement_is_asked_again(name):
    def check(subject: str, at: str) -> None:
        run = Run.objects.get(pk=subject)
        assert "passed on" in at or Archival.objects.filter(run=run).exists(), at
        assert is_whole(run) or name == "archive_by_age" or "passed on" in at, at
        assert first_bad_row(run) is None, at

    with moved_clock():
        assert fail_each_once(VERBS[name], check, only=commits_something, in_a_row=1) > 2
        if IN_FULL or THOROUGH and not ON_POSTGRES:
            assert fail_each_once(VERBS[name], check) > 8


def test_who_reads_in_the_middle_sees_every_row_once(monkeypatch):
    """At each statement of the move, from a connection of its own."""
    monkeypatch.setattr(moving, "A_LOOK", 3)
    monkeypatch.setattr(archiving, "AT_A_TIME", 2)
    run = ended_family()
    before, seen = where(run), set()

    def look() -> None:
        for hot, ids in zip(COLD, before, strict=True):
            read = list(
                everywhere(hot).filter(run__root=run.root).order_by("pk").values_list("pk", flat=True)
            )
            assert read == sorted(ids)
        assert run.state_at() == {"log": ["a", "went", "a value", "done"]} and first_bad_row(run) is None
        seen.add(sum(rows.objects.filter(run=run).count() for rows in COLD))

    def see(_number: int, when: str, sql: str) -> None:
        if when == "after" and sql.startswith(("INSERT", "DELETE", "COMMIT")):
            aside.submit(look).result()

    with ThreadPoolExecutor(1) as aside:
        with each_statement(see):
            run.archive("long over", "olga")
        aside.submit(lambda: connection.close()).result()
    assert len(seen) > 5 and is_whole(run)


def test_whoever_comes_at_the_same_time_finds_it_before_or_after():
    """Two that archive, one that erases, one that keeps, and a worker's late evidence, in any order."""
    for _ in range(4):
        run = ended_family()
        late = {"kind": "late_result", "worker": "w2", "fence": 1, "body": "later"}
        entry = run.hot_entries.first()
        ends = at_once(
            lambda: run.archive("long over", "olga"),  # noqa: B023 - done before the next one
            lambda: run.archive("long over", "bob"),  # noqa: B023
            lambda: Run.objects.get(pk=run.pk).keep("a court asked", "olga"),  # noqa: B023
            lambda: Run.objects.get(pk=run.pk).erase("asked for", "olga"),  # noqa: B023
            lambda: Remark.objects.create(run_id=run.pk, entry=entry, at=clock.now(), **late),  # noqa: B023
        )
        assert all(
            isinstance(end, Archival | Remark | Tombstone | Conflict | IntegrityError) for end in ends
        ), ends
        with moved_clock() as moved:
            moved.move(timedelta(hours=2))
            chores.do_due()
        family = Run.objects.filter(root=run.pk)
        assert [first_bad_row(one) for one in family] == [None, None]
        assert not Archival.objects.under_way().exists() and not Tombstone.objects.under_way().exists()
        for one in family:
            tombstone = Tombstone.objects.filter(run=one).first()
            texts = set(one.checkpoints.values_list("body", flat=True))
            assert (texts == {""}) is (tombstone is not None)


def test_a_key_that_moves_at_that_very_moment_is_not_given_again():
    """An INSERT that waits for the move, of which PostgreSQL shows it nothing yet, looks into the archive after it."""
    (run,) = ended()
    other = start(small, {"log": []})
    row = {"step": 9, "key": "k", "kind": "effect", "name": "n", "request": "{}", "opened_at": clock.now()}
    LedgerEntry.objects.create(
        run=run, idempotency_key="only once", **row | {"status": "done", "result": "1"}
    )
    ended(0)
    waiting = []

    def insert() -> None:
        try:
            with transaction.atomic():
                LedgerEntry.objects.create(run=other, idempotency_key="only once", **row)
        finally:
            connection.close()

    def see(_number: int, when: str, sql: str) -> None:
        if when == "after" and sql.startswith('DELETE FROM "runs_ledgerentry"') and not waiting:
            waiting.append(aside.submit(insert))
            if connection.vendor == "postgresql":
                assert wait_until(somebody_waits, 60)

    with ThreadPoolExecutor(1) as aside:
        with each_statement(see):
            run.archive("long over", "olga")
        with pytest.raises(IntegrityError):
            waiting[0].result(60)
    assert everywhere(LedgerEntry).filter(idempotency_key="only once").get().run == run


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_clear_snapshot()"
        )  # within a transaction it shows what it showed before
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return cursor.fetchone() is not None


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
