"""A database goes back to the tables of the release before, with what is in it, and forward again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.exceptions import IrreversibleError

from runs import Graph, start
from runs.engine import triggers
from runs.engine.verify import first_bad_row
from runs.models import Run
from tests.runs import storied
from tests.runs.driving import drive, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE_THE_ARCHIVE, NOW = "0010", "0013"

later = Graph("later", state=Log)


@later.node
def pay_later(run, state):
    run.wait_for("go")
    state.log.append(run.call(storied.pay, amount=3))


@pytest.fixture
def migrated() -> Iterator[Callable[[str], None]]:
    """Takes `runs` to a migration; in the end all are applied again."""
    try:
        yield lambda name: call_command("migrate", "runs", name, verbosity=0)
    finally:
        call_command("migrate", verbosity=0)


def rows() -> dict[str, list[dict[str, Any]]]:
    """Of the engine's tables, in order of their ids."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names()):
            if (
                table.startswith("runs_") and table != "runs_archiveround"
            ):  # when to look is anew with its table
                cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
                names = [name for name, *_ in cursor.description]
                found[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return found


def as_a_worker_of_then(table: str, row: dict[str, Any]) -> None:
    """Which knows no archive: it writes a row of its own."""
    names, places = ", ".join(f'"{name}"' for name in row), ", ".join(["%s"] * len(row))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))
        transaction.set_rollback(True)


def test_a_database_goes_back_to_the_tables_before_the_archive_and_forward_with_its_runs(ada, migrated):
    """No row is lost, the triggers fit the tables at both ends, and a run that waits goes on."""
    with registered(storied.leaf, storied.story, later):
        storied.told(ada)
        drive(waiting := start(later, {"log": []}))
        before = rows()
        migrated(BEFORE_THE_ARCHIVE)
        older = rows()
        assert triggers.missing() == []
        gone = {table for table in before if "archiv" in table}
        assert len(gone) == 5 and before.keys() - older.keys() == gone
        for table, there in older.items():
            kept = [{name: row[name] for name in there[0]} for row in before[table]] if there else []
            assert there == kept, table
        entry, remark = older["runs_ledgerentry"][-1], older["runs_remark"][-1]
        as_a_worker_of_then("runs_ledgerentry", entry | {"id": 10_000, "idempotency_key": "new", "step": 99})
        as_a_worker_of_then("runs_remark", remark | {"id": 10_000})
        with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
            cursor.execute("DELETE FROM runs_checkpoint")
        migrated(NOW)
        assert rows() == before and triggers.missing() == []
        waiting.signal("go", True)
        drive(waiting)
    assert waiting.status == "completed" and waiting.state_at() == {"log": ["paid 3"]}
    assert [first_bad_row(run) for run in Run.objects.all()] == [None] * Run.objects.count()


def test_tables_of_the_archive_are_not_taken_away_while_something_is_in_them(ada, migrated):
    with registered(storied.leaf, storied.story):
        run = storied.told(ada)
        run.archive("it is long over", "olga")
        before = rows()
        with pytest.raises(IrreversibleError, match="4 runs are in the archive, which goes with its tables"):
            migrated(BEFORE_THE_ARCHIVE)
        migrated(NOW)
        after = rows()
    assert after == before and first_bad_row(run) is None
