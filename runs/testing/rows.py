"""All rows of the database, to see whether a process that was killed has changed any."""

from __future__ import annotations

from functools import cache
from typing import Any  # a row holds whatever its columns do

from django.db import connection

Rows = dict[str, list[tuple[Any, ...]]]


def all_rows() -> Rows:
    """Of each table that has some, as the driver gives them."""
    with connection.cursor() as cursor:
        found = {}
        for table, columns in _statements(connection.alias, connection.settings_dict["NAME"]):
            cursor.execute(columns)
            if rows := cursor.fetchall():
                found[table] = rows
        return found


@cache
def _statements(alias: str, name: str) -> list[tuple[str, str]]:
    """(table, SELECT), asked for once: tests make no tables."""
    quote = connection.ops.quote_name
    return [(table, f"SELECT * FROM {quote(table)}") for table in connection.introspection.table_names()]
