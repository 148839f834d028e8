"""The hot path in raw SQL: one statement a step on PostgreSQL, two in a transaction on SQLite.

Everything here is fenced: it changes rows only while the run still has the fence (and the seq) that the caller holds.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any  # column values

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from runs.core.chain import Link
from runs.engine.step_view import MOVES, StepView

CHECKPOINT = {
    "seq": "integer",
    "kind": "varchar",
    "step": "integer",
    "node": "varchar",
    "status": "varchar",
    "version": "integer",
    "attempt": "integer",
    "fence": "bigint",
    "body": "text",
    "snapshot": "boolean",
    "actor": "varchar",
    "reason": "text",
    "at": "timestamptz",
    "entries": "text",
    "body_digest": "varchar",
    "salt": "bytea",
    "digest": "varchar",
}
RUN = {
    "seq": "integer",
    "step": "integer",
    "node": "varchar",
    "status": "varchar",
    "ending": "varchar",
    "attempt": "integer",
    "deaths": "integer",
    "silent": "integer",
    "alone": "boolean",
    "fence": "bigint",
    "head": "varchar",
    "wake_at": "timestamptz",
    "leased_by": "varchar",
    "error_kind": "varchar",
    "error": "text",
    "finished_at": "timestamptz",
}


class Parked:
    """A wake_at that is right only while no answer came since `answers` was read; otherwise the run is due now."""

    __slots__ = ("answers", "wake_at", "now")

    def __init__(self, answers: int, wake_at: Any, now: Any) -> None:
        self.answers, self.wake_at, self.now = answers, wake_at, now


_own = threading.local()  # this thread's connection: Django's own way to it takes a tenth of a step
PROGRESS = ", attempt = 0, deaths = 0, silent = 0"
AT = list(CHECKPOINT).index("at")


def advance(fence: int, seq: int, changes: Mapping[str, Any], link: Link, progress: bool = False) -> bool:
    """One transition by the worker that holds the run: the Run moves and its sealed checkpoint is added, or neither.

    Fence and seq together say that it is still running: what else changes the status moves one of them. `progress` is
    a step from node to node: it sets no moment, and the counts of tries and deaths to 0.
    """
    names = tuple(changes)
    values: list[Any] = [*changes.values()]
    parked = not progress and isinstance(changes.get("wake_at"), Parked)
    if parked:
        place = names.index("wake_at")
        waits = values[place]
        values[place : place + 1] = [waits.answers, waits.wake_at, waits.now]
    row = [
        link.seq, link.kind, link.step, link.node, link.status, link.version, link.attempt, link.fence, link.body,
        link.snapshot, link.actor, link.reason, link.moment, link.entries, link.body_digest, link.salt, link.digest,
    ]  # fmt: skip
    database = getattr(_own, "database", None) or _found()
    if database.vendor == "postgresql":
        statement, values = _one_statement(names, parked, progress), [*values, link.run, fence, seq, *row]
        if database.connection is None or watched(database):
            with database.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.rowcount == 1
        if progress and not database.in_atomic_block:
            changed = _prepared(database.connection).change(statement, values)
            if changed is not None:
                return changed == 1
        try:  # the driver's own cursor: Django's only lets others watch, and costs a quarter of a step
            return database.connection.execute(statement, values).rowcount == 1
        except database.Database.Error as error:
            with database.wrap_database_errors:
                raise error
    row[AT] = f"{link.moment[:10]} {link.moment[11:-1]}"  # as Django's backend writes it: no zone
    digits = link.run.replace("-", "")
    if progress and names == MOVES and database.connection is not None and _is_ours(database):
        return _step_view(database).take(database, [digits, *row, seq, changes["node"]])
    update, insert = _two_statements(names, parked, progress)
    if not progress:  # else there is no moment among them
        values = list(map(_sqlite_value, values))
    moved = (update, [*values, digits, fence, seq]), (insert, [digits, *row])
    if _is_ours(database):
        return database.write_briefly(*moved)
    with _watched_transaction(database) as cursor:
        cursor.execute(*moved[0])
        if cursor.rowcount == 1:
            cursor.execute(*moved[1])
            return True
    return False


def _found() -> BaseDatabaseWrapper:
    _own.database, _own.logged = connections["default"], settings.DEBUG
    return _own.database


def _prepared(connection: Any) -> Any:
    """What this thread's connection has prepared; a new one is given its statements anew."""
    from runs.engine.prepared import Prepared  # psycopg: only where the database is PostgreSQL

    known = getattr(_own, "prepared", None)
    if known is None or known.connection is not connection:
        known = _own.prepared = Prepared(connection)
    return known


def _step_view(database: BaseDatabaseWrapper) -> StepView:
    """The same on SQLite."""
    known = getattr(_own, "step_view", None)
    if known is None or known.connection is not database.connection:
        with database.wrap_database_errors:  # one that is busy is asked again
            known = _own.step_view = StepView(database.connection, tuple(CHECKPOINT), PROGRESS)
    return known


def _is_ours(database: BaseDatabaseWrapper) -> bool:
    """Our own backend, which nobody watches, outside of a transaction."""
    return hasattr(database, "write_briefly") and not (database.in_atomic_block or watched(database))


def watched(database: BaseDatabaseWrapper) -> bool:
    """Whether anybody looks at the statements: a debug log, a test's count, the fault injector."""
    return bool(database.execute_wrappers) or database.force_debug_cursor or getattr(_own, "logged", False)


def brief_transaction(database: BaseDatabaseWrapper) -> AbstractContextManager[Any]:
    """A transaction of a few statements on SQLite: what atomic() does, without what only nesting needs."""
    if _is_ours(database):
        return database.brief_transaction()
    return _watched_transaction(database)


@contextmanager
def _watched_transaction(database: BaseDatabaseWrapper) -> Iterator[CursorWrapper]:
    if database.in_atomic_block:
        with transaction.atomic(), database.cursor() as cursor:
            yield cursor
        return
    with database.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if database.connection is not None and database.connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise


def _sqlite_value(value: Any) -> Any:
    """As Django's backend writes it: a moment is text, in UTC, without its zone."""
    if type(value) is datetime:
        utc = value if value.tzinfo is UTC else value.astimezone(UTC)
        return str(utc)[:-6]
    return value


@lru_cache(maxsize=64)
def _one_statement(names: tuple[str, ...], parked: bool, progress: bool) -> str:
    moved = ", ".join(_assignment(name, parked, f"::{RUN[name]}") for name in names) + PROGRESS * progress
    columns = ", ".join(f'"{name}"' for name in CHECKPOINT)
    values = ", ".join(f"%s::{kind}" for kind in CHECKPOINT.values())
    return (
        f"WITH moved AS (UPDATE runs_run SET {moved}"
        " WHERE id = %s::uuid AND fence = %s::bigint AND seq = %s::integer RETURNING id)"
        f" INSERT INTO runs_checkpoint (run_id, {columns}) SELECT moved.id, {values} FROM moved"
    )


@lru_cache(maxsize=64)
def _two_statements(names: tuple[str, ...], parked: bool, progress: bool) -> tuple[str, str]:
    moved = ", ".join(_assignment(name, parked, "") for name in names) + PROGRESS * progress
    columns = ", ".join(f'"{name}"' for name in CHECKPOINT)
    places = ", ".join(["%s"] * (len(CHECKPOINT) + 1))
    return (
        f"UPDATE runs_run SET {moved} WHERE id = %s AND fence = %s AND seq = %s",
        f"INSERT INTO runs_checkpoint (run_id, {columns}) VALUES ({places})",
    )


def _assignment(name: str, parked: bool, cast: str) -> str:
    if name == "wake_at" and parked:
        answers = "::bigint" if cast else ""
        return f"wake_at = CASE WHEN answers = %s{answers} THEN %s{cast} ELSE %s{cast} END"
    return f"{name} = %s{cast}"


ENTRY = {
    "step": "integer",
    "key": "varchar",
    "kind": "varchar",
    "name": "varchar",
    "request": "text",
    "request_digest": "varchar",
    "idempotency_key": "varchar",
    "write": "boolean",
    "status": "varchar",
    "result": "text",
    "error_kind": "varchar",
    "error": "text",
    "attempts": "integer",
    "tried_at": "timestamptz",
    "due_at": "timestamptz",
    "opened_at": "timestamptz",
    "answered_at": "timestamptz",
    "answered_by": "varchar",
    "effective_at": "timestamptz",
    "taken_at": "timestamptz",
    "awaited": "boolean",
    "approved_digest": "varchar",
    "approval_head": "varchar",
    "decided_by_id": "bigint",
    "settles_id": "bigint",
    "compensation": "varchar",
    "compensates_id": "bigint",
}


def add_entry(run: Any, fence: int, row: Mapping[str, Any]) -> int | None:
    """Insert a ledger entry for the holder of the fence; its id, or None when the fence has moved."""
    columns = ", ".join(f'"{name}"' for name in ENTRY)
    postgres = connection.vendor == "postgresql"
    values = [row[name] for name in ENTRY]
    if postgres:
        places = ", ".join(f"%s::{kind}" for kind in ENTRY.values())
        held = "WITH held AS (SELECT id FROM runs_run WHERE id = %s::uuid AND fence = %s::bigint"
        held += " AND status = 'running' FOR SHARE) "
        statement = (
            f"{held}INSERT INTO runs_ledgerentry (run_id, {columns}) SELECT held.id, {places} FROM held"
        )
        with connection.cursor() as cursor:
            cursor.execute(f"{statement} RETURNING id", [run, fence, *values])
            added = cursor.fetchone()
            return added[0] if added else None
    values = list(map(_sqlite_value, values))
    places = ", ".join(["%s"] * len(ENTRY))
    with brief_transaction(connection) as cursor:
        cursor.execute(
            f"INSERT INTO runs_ledgerentry (run_id, {columns}) SELECT id, {places} FROM runs_run"
            " WHERE id = %s AND fence = %s AND status = 'running' RETURNING id",
            [*values, run.hex, fence],
        )
        added = cursor.fetchone()
        return added[0] if added else None


def change_entry(
    run: Any, fence: int, entry: int, statuses: tuple[str, ...], changes: Mapping[str, Any]
) -> bool:
    """Change an entry that is in one of `statuses`, for the holder of the fence."""
    postgres = connection.vendor == "postgresql"
    sets = ", ".join(f'"{name}" = %s' + (f"::{ENTRY[name]}" if postgres else "") for name in changes)
    among = ", ".join(["%s"] * len(statuses))
    values = list(changes.values())
    if postgres:
        statement = (
            "WITH held AS (SELECT id FROM runs_run WHERE id = %s::uuid AND fence = %s::bigint"
            f" AND status = 'running' FOR SHARE) UPDATE runs_ledgerentry SET {sets} FROM held"
            f" WHERE runs_ledgerentry.id = %s::bigint AND run_id = held.id AND status IN ({among})"
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [run, fence, *values, entry, *statuses])
            return cursor.rowcount == 1
    values = list(map(_sqlite_value, values))
    with brief_transaction(connection) as cursor:
        cursor.execute(
            f"UPDATE runs_ledgerentry SET {sets} WHERE id = %s AND status IN ({among}) AND EXISTS"
            " (SELECT 1 FROM runs_run WHERE id = %s AND fence = %s AND status = 'running')",
            [*values, entry, *statuses, run.hex, fence],
        )
        return cursor.rowcount == 1


def heartbeat(worker: str, held: list[tuple[Any, int]], wake_at: Any) -> set[Any]:
    """Move the leases of what this worker still holds, in one statement; the ids that it does hold."""
    if not held:
        return set()
    postgres = connection.vendor == "postgresql"
    pairs = ", ".join(["(%s::uuid, %s::bigint)" if postgres else "(%s, %s)"] * len(held))
    statement = (
        "UPDATE runs_run SET wake_at = %s WHERE leased_by = %s AND status = 'running'"
        f" AND (id, fence) IN (VALUES {pairs}) RETURNING id"
    )
    values: list[Any] = [wake_at, worker]
    for run, fence in held:
        values += [run if postgres else run.hex, fence]
    if not postgres:
        values[0] = _sqlite_value(wake_at)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        return {row[0] if postgres else uuid.UUID(row[0]) for row in cursor.fetchall()}


def hold(run: Any, fence: int, seq: int) -> bool:
    """Lock the run for the rest of the transaction, if it still has this fence and seq."""
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM runs_run WHERE id = %s AND fence = %s AND seq = %s AND status = 'running'"
            + (" FOR UPDATE" if postgres else ""),
            [run if postgres else run.hex, fence, seq],
        )
        return cursor.fetchone() is not None
