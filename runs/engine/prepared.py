"""A statement that PostgreSQL knows already, sent as libpq takes it: a name and the values' text.

psycopg makes a cursor for each statement and looks at each value for how to send it; that costs as much processor time
as the rest of a step. Only what a step consists of is known here: int, str, bool and bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any  # values

from psycopg import Connection, pq

PLACE = "%s"


class Prepared:
    """The statements that one connection was given. They end with the connection, or when it deallocates all."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self._names: dict[str, bytes] = {}

    def change(self, statement: str, values: Sequence[Any]) -> int | None:
        """How many rows it changed; None if it was not sent, or failed: it changed nothing or the connection is lost.

        Whoever gets None does it in the ordinary way, which raises the right error if it fails there too. One that
        failed is prepared anew: a ROLLBACK may have made psycopg deallocate all.
        """
        texts = list(map(_text, values))
        if None in texts or self.connection.prepare_threshold is None:
            return None  # None: a pooler stands between, so that the next statement may reach another session
        server = self.connection.pgconn
        name = self._names.get(statement) or self._prepare(server, statement)
        if name is None:
            return None
        result = server.exec_prepared(name, texts)
        if result.status != pq.ExecStatus.COMMAND_OK:
            self._names.clear()
            return None
        return result.command_tuples

    def _prepare(self, server: pq.abc.PGconn, statement: str) -> bytes | None:
        name = b"durableweb_%d" % next(_numbers)
        if server.prepare(name, _numbered(statement).encode()).status != pq.ExecStatus.COMMAND_OK:
            return None
        self._names[statement] = name
        return name


_numbers = count(1)


def _numbered(statement: str) -> str:
    first, *others = statement.split(PLACE)
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


def _text(value: Any) -> bytes | None:
    """As PostgreSQL reads it; None for what is not sent like this."""
    kind = type(value)
    if kind is str:
        text = value.encode()
        return None if b"\0" in text else text  # libpq would send the part before it
    if kind is int:
        return b"%d" % value
    if kind is bool:
        return b"t" if value else b"f"
    if kind is bytes:
        return b"\\x" + value.hex().encode()
    return None
