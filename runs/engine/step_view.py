"""A step on SQLite as one statement: an INSERT into a view, whose trigger moves the run and adds its checkpoint.

As two statements it is four, with BEGIN and COMMIT, and a fifth of what the database takes for a step goes into sending
them. View and trigger are the connection's own (TEMP): no file of a database knows of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any  # column values

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

MOVED_ON = "the run has moved on"
MOVES = ("seq", "step", "head", "node")  # of the run, and nothing but these and its counts


class StepView:
    """What one connection was given. It ends with the connection."""

    def __init__(self, connection: Connection, columns: Sequence[str], progress: str) -> None:
        self.connection = connection
        names = ", ".join(f'"{name}"' for name in columns)
        new = ", ".join(f'NEW."{name}"' for name in columns)
        connection.execute("DROP VIEW IF EXISTS temp.runs_step")
        connection.execute(
            f"CREATE TEMP VIEW runs_step AS SELECT run_id, {names}, seq AS seq_before,"
            " node AS next_node FROM runs_checkpoint"
        )
        connection.execute(
            "CREATE TEMP TRIGGER runs_step_is_taken INSTEAD OF INSERT ON runs_step BEGIN"
            f" UPDATE runs_run SET seq = NEW.seq, step = NEW.step, head = NEW.digest, node = NEW.next_node{progress}"
            " WHERE id = NEW.run_id AND fence = NEW.fence AND seq = NEW.seq_before;"
            f" SELECT RAISE(ABORT, '{MOVED_ON}') WHERE changes() = 0;"
            f" INSERT INTO runs_checkpoint (run_id, {names}) VALUES (NEW.run_id, {new}); END"
        )
        places = ", ".join("?" * (len(columns) + 3))
        self._statement = f"INSERT INTO runs_step (run_id, {names}, seq_before, next_node) VALUES ({places})"

    def take(self, database: BaseDatabaseWrapper, values: Sequence[Any]) -> bool:
        """`values`: the run, the checkpoint's columns, the seq before, and the node that follows: a checkpoint names
        the one that was left. False, and nothing is changed, if the run is not at that seq, or has another fence."""
        try:
            database.write_at_once(self._statement, values)
        except IntegrityError as error:
            if str(error) == MOVED_ON:
                return False
            raise
        return True
