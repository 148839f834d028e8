"""Django's SQLite backend for many writers: WAL, synchronous=FULL, IMMEDIATE, and a lock that queues the writers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any  # rows and parameters are whatever the caller's statement makes of them

from django.db.backends.sqlite3 import base

from durableweb.sqlite.lock import WriteLock
from durableweb.sqlite.schema import SchemaEditor

PATIENCE_SECONDS = 30.0
# A step changes three or four pages, and each is written whole: small ones make a step an eighth cheaper. A file that
# was made with larger ones keeps them.
PAGE_BYTES = 2048
LOG_BYTES = (
    16 * 2**20
)  # four times SQLite's own: pages that change with every step are copied back a quarter as often
READS = frozenset(
    {"SELECT", "VALUES", "EXPLAIN", "PRAGMA", "SAVEPOINT", "RELEASE", "COMMIT", "END", "ROLLBACK", "DETACH"}
)
FIRST_WORD = re.compile(r"\s*(\w+)")
WRITING_WORD = re.compile(r"\b(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)


class DatabaseWrapper(base.DatabaseWrapper):
    """Every transaction, and every writing statement outside one, holds the file's write lock until its end.

    A transaction is IMMEDIATE: a read that is followed by a write in one transaction cannot fail on a row that
    another writer changed in between. A lock not free for 30 s raises OperationalError, as SQLite itself does.
    """

    # No AUTOINCREMENT: it writes a page of its own with every insert. The highest id may be given again once its row is
    # gone, and what follows growing ids (runs/live/tail.py) looks for that (docs/adr/0012).
    data_types_suffix: dict[str, str] = {}

    write_lock: WriteLock | None = None
    SchemaEditorClass = SchemaEditor

    def get_connection_params(self) -> dict[str, Any]:
        params = {"timeout": PATIENCE_SECONDS} | super().get_connection_params()
        self.transaction_mode = "IMMEDIATE"
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> base.Database.Connection:
        if self.is_in_memory_db():
            return _folding(super().get_new_connection(conn_params))
        path = Path(conn_params["database"])
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.write_lock = WriteLock(path.with_name(f"{path.name}.lock"))
        connection = _folding(super().get_new_connection(conn_params))
        connection.execute("PRAGMA synchronous = FULL")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            take_turn(self.write_lock)  # two first starts at once would find the file locked
            try:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                self.write_lock.release()
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // page_bytes}")
        return connection

    def create_cursor(self, name: str | None = None) -> base.SQLiteCursorWrapper:
        if self.write_lock is None:
            return super().create_cursor(name)
        cursor = self.connection.cursor(factory=QueuedCursor)
        cursor.write_lock = self.write_lock
        return cursor

    def brief_transaction(self) -> BriefTransaction:
        """A transaction of a few statements, on the driver's own cursor; not to be nested in another."""
        self.ensure_connection()
        return BriefTransaction(self)

    def write_briefly(self, first: tuple[str, Sequence[Any]], *more: tuple[str, Sequence[Any]]) -> bool:
        """The statements in a transaction of their own, in turn. False, and nothing is changed, if the first one
        changed no row. For the hottest path: no cursor of Django's, whose errors it raises all the same."""
        if self.connection is None:
            self.ensure_connection()
        lock, connection = self.write_lock, self.connection
        try:
            if lock is not None:
                take_turn(lock)
            cursor = base.Database.Cursor(connection)
            cursor.execute("BEGIN IMMEDIATE")
            query, params = first
            cursor.execute(_with_question_marks(query), params)
            if cursor.rowcount < 1:
                return False
            for query, params in more:
                cursor.execute(_with_question_marks(query), params)
            cursor.execute("COMMIT")
            return True
        except base.Database.Error as error:
            with self.wrap_database_errors:
                raise error
        finally:
            try:
                if connection.in_transaction:
                    connection.rollback()
            finally:
                if lock is not None:
                    lock.release()

    def write_at_once(self, query: str, params: Sequence[Any]) -> None:
        """One statement, with SQLite's own question marks, that is a transaction by itself: the least there is."""
        lock = self.write_lock
        if lock is not None:
            take_turn(lock)
        try:
            self.connection.execute(query, params)
        except base.Database.Error as error:
            with self.wrap_database_errors:
                raise error
        finally:
            if lock is not None:
                lock.release()

    def _commit(self) -> None:
        try:
            super()._commit()
        finally:
            self._release_after_transaction()

    def _rollback(self) -> None:
        try:
            super()._rollback()
        finally:
            self._release_after_transaction()

    def _close(self) -> None:
        try:
            super()._close()
        finally:
            if self.write_lock is not None:
                self.write_lock.close()

    def _release_after_transaction(self) -> None:
        if self.write_lock is not None and not (self.connection and self.connection.in_transaction):
            self.write_lock.release()


def _folding(connection: base.Database.Connection) -> base.Database.Connection:
    """With FOLDED(text), for a search that does not tell capitals apart: SQLite's own UPPER knows A to Z."""
    connection.create_function("FOLDED", 1, _folded, deterministic=True)
    return connection


def _folded(text: str | None) -> str | None:
    return None if text is None else text.casefold()


class BriefTransaction:
    """BEGIN IMMEDIATE in turn, COMMIT at the end, ROLLBACK on an error, which is Django's then."""

    __slots__ = ("database", "cursor")

    def __init__(self, database: DatabaseWrapper) -> None:
        self.database = database

    def __enter__(self) -> BriefTransaction:
        lock = self.database.write_lock
        with self.database.wrap_database_errors:
            if lock is not None:
                take_turn(lock)
            try:
                self.cursor = base.Database.Cursor(self.database.connection)
                self.cursor.execute("BEGIN IMMEDIATE")
            except BaseException:
                self._leave()
                raise
        return self

    def execute(self, query: str, params: Sequence[Any]) -> None:
        self.cursor.execute(_with_question_marks(query), params)

    def fetchone(self) -> Any:
        return self.cursor.fetchone()

    @property
    def rowcount(self) -> int:
        return self.cursor.rowcount

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        with self.database.wrap_database_errors:
            try:
                if kind is None:
                    self.cursor.execute("COMMIT")
            finally:
                self._leave()
        if kind is not None:
            self.database.wrap_database_errors.__exit__(kind, error, trace)

    def _leave(self) -> None:
        connection = self.database.connection
        try:
            if connection is not None and connection.in_transaction:
                connection.rollback()
        finally:
            if self.database.write_lock is not None:
                self.database.write_lock.release()


class QueuedCursor(base.SQLiteCursorWrapper):
    """Takes the write lock before a statement that writes or opens a transaction, and keeps it until that ends."""

    write_lock: WriteLock
    _unfinished = False  # outside a transaction, INSERT ... RETURNING commits only once its rows are read

    def execute(self, query: str, params: Any = None) -> Any:
        return self._in_turn(query, lambda: super(QueuedCursor, self).execute(query, params))

    def convert_query(self, query: str, *, param_names: list[str] | None = None) -> str:
        """Django's `%s` as SQLite's `?`; the statements of a step are many times the same."""
        if param_names is not None:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        return self._in_turn(query, lambda: super(QueuedCursor, self).executemany(query, param_list))

    def executescript(self, script: str) -> Any:
        return self._in_turn("BEGIN", lambda: super(QueuedCursor, self).executescript(script))

    def fetchone(self) -> Any:
        row = super().fetchone()
        if row is None:
            self._finish()
        return row

    def fetchmany(self, size: int | None = None) -> list[Any]:
        rows = super().fetchmany(self.arraysize if size is None else size)
        if not rows:
            self._finish()
        return rows

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        self._finish()
        return rows

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            self._finish()
            raise

    def close(self) -> None:
        super().close()
        self._finish()

    def __del__(self) -> None:
        if self._unfinished:
            self.close()

    def _in_turn(self, query: str, execute: Callable[[], Any]) -> Any:
        if self.write_lock.held or not writes(query):
            try:
                return execute()
            finally:
                if not self._unfinished:
                    self._finish()  # the statement may have been a COMMIT
        take_turn(self.write_lock)
        try:
            outcome = execute()
            self._unfinished = RETURNING.search(query) is not None
            return outcome
        finally:
            if not self._unfinished:
                self._finish()

    def _finish(self) -> None:
        self._unfinished = False
        if self.write_lock.held and not self.connection.in_transaction:
            self.write_lock.release()


@lru_cache(maxsize=512)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


@lru_cache(maxsize=1024)
def writes(query: str) -> bool:
    """Whether the statement may need SQLite's write lock; an unknown one is taken to."""
    word = FIRST_WORD.match(query)
    if word is None:
        return True
    first = word[1].upper()
    if first == "WITH":
        return WRITING_WORD.search(query) is not None
    return first not in READS


def take_turn(lock: WriteLock) -> None:
    if not lock.acquire(PATIENCE_SECONDS):
        raise base.Database.OperationalError(
            f"database is locked: another writer has held {lock.path} for {PATIENCE_SECONDS:g} s"
        )
