"""Indexes that a search of the inbox is answered from on PostgreSQL: trigrams of what people search in.

They need the extension pg_trgm, which comes with PostgreSQL. Each `migrate` makes what is missing of both, where it
may; where it may not, a search reads row by row as it does on SQLite, finds the same, and a system check says so.
They are no part of Django's state, so that an installation without the extension can migrate like any other.
"""

from __future__ import annotations

from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

EXTENSION = "pg_trgm"
TABLE = "approvals_approval"
# As Django writes the lookups of approvals/models/search.py
EXPRESSIONS = {
    "title": "UPPER(title)",
    "body": "UPPER(body)",
    "graph": "UPPER(graph::text)",
    "id": "REPLACE(id::varchar, '-', '')",
}
# The open ones are few among all, and an index of their own stays small.
INDEXES = {"approval_words_open": "outcome = ''", "approval_words_decided": "NOT (outcome = '')"}
# From them the planner knows whether a text is found often, so that the list is walked in order, or rarely: of
# expressions in such an index it keeps no figures that it uses.
STATISTICS = {f"approval_words_{name}": expression for name, expression in EXPRESSIONS.items()}
# How many texts are kept in them. Of a hundred, as is usual, none may have what one in two hundred has: the index was
# asked then, and in vain (approvals/looking.py). Plans of a search take 2 ms more for it, ANALYZE of a million seconds.
TEXTS_KEPT = 1_000


def install(using: str = "default", **_: object) -> None:
    """Make what is missing, without holding up who writes meanwhile. Of a million approvals it takes minutes."""
    connection = connections[using]
    lacking = missing(using)
    if not lacking or not _have_extension(connection):
        return
    # Nothing else may be under way in the transaction of a CONCURRENTLY.
    meanwhile = "" if connection.in_atomic_block else "CONCURRENTLY"
    with connection.cursor() as cursor:
        kind = f"{_schema(connection)}.gin_trgm_ops"
        columns = ", ".join(f"({expression}) {kind}" for expression in EXPRESSIONS.values())
        for name in [name for name in INDEXES if name in lacking]:
            cursor.execute(f"DROP INDEX {meanwhile} IF EXISTS {name}")  # what an interrupted one left
            cursor.execute(
                f"CREATE INDEX {meanwhile} {name} ON {TABLE} USING gin ({columns}) WHERE {INDEXES[name]}"
            )
        for name in [name for name in STATISTICS if name in lacking]:
            cursor.execute(f"CREATE STATISTICS IF NOT EXISTS {name} ON ({STATISTICS[name]}) FROM {TABLE}")
            cursor.execute(f"ALTER STATISTICS {name} SET STATISTICS {TEXTS_KEPT:d}")
        cursor.execute(f"ANALYZE {TABLE}")


def remove(using: str = "default") -> None:
    """For who fills a table at once, and makes the indexes afterwards."""
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            for name in INDEXES:
                cursor.execute(f"DROP INDEX IF EXISTS {name}")


def missing(using: str = "default") -> list[str]:
    """Names of the indexes and statistics that should be there and are not; none on a database that has no such."""
    connection = connections[using]
    if connection.vendor != "postgresql" or TABLE not in connection.introspection.table_names():
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indisvalid AND indrelid = %s::regclass"
            " UNION ALL SELECT stxname::text FROM pg_statistic_ext"
            " WHERE stxrelid = %s::regclass AND stxstattarget >= %s",
            [TABLE, TABLE, TEXTS_KEPT],
        )
        found = {name for (name,) in cursor.fetchall()}
    return sorted({*INDEXES, *STATISTICS} - found)


def _have_extension(connection: BaseDatabaseWrapper) -> bool:
    if _schema(connection):
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = %s", [EXTENSION])
        if cursor.fetchone() is None:
            return False
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute(f"CREATE EXTENSION {EXTENSION}")
    except DatabaseError:  # this user may not; the check tells who can
        return False
    return True


def _schema(connection: BaseDatabaseWrapper) -> str:
    """Where the extension is, as a quoted name; "" if it is nowhere."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
            " WHERE extname = %s",
            [EXTENSION],
        )
        row = cursor.fetchone()
    return row[0] if row else ""
