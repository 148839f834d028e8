"""How moments come from PostgreSQL: a page reads up to two thousand, and Django's reader takes 8 µs for each.

Django sets the zone itself, and for that has psycopg's reader in Python, not the one in C. Sessions are in UTC, and
so is the text that they send; the standard library reads that in C, with its zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from psycopg import adapters
from psycopg.pq import Format
from psycopg.types.datetime import TimestamptzLoader

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from psycopg.abc import Buffer

KIND = adapters.types["timestamptz"].oid


class MomentReader(TimestamptzLoader):
    timezone = UTC  # Django looks at it, and would put a reader of its own before one of another zone

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:  # beyond the year 9999, or not in ISO's form: psycopg reads it, or says why not
            return super().load(data)


def quicken(connection: BaseDatabaseWrapper) -> None:
    """For a connection that was just opened, or borrowed from the pool, where it keeps its reader."""
    known = connection.connection.adapters
    if connection.timezone is UTC and known.get_loader(KIND, Format.TEXT) is not MomentReader:
        known.register_loader(KIND, MomentReader)
