"""Changes of tables on SQLite that leave the triggers as they were.

For most changes Django makes a table anew: it copies the rows, drops the table, its triggers with it, and renames the
copy, which SQLite refuses while a trigger of any other table names the one that is gone.
"""

from __future__ import annotations

from typing import Any, Self  # models and fields, as Django passes them

from django.db import OperationalError
from django.db.backends.sqlite3.schema import DatabaseSchemaEditor


class SchemaEditor(DatabaseSchemaEditor):
    def __enter__(self) -> Self:
        """On a connection of its own: a TEMP trigger on the one before would stand in the way as well, unseen."""
        if not self.connection.in_atomic_block and not self.connection.is_in_memory_db():
            self.connection.close()
        return super().__enter__()

    def _remake_table(self, *words: Any, **more: Any) -> None:
        """All triggers are laid aside and put back in the same transaction. One that no longer fits its table is left
        to whoever made it: ours are written anew after each migrate (runs/engine/triggers.py)."""
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
            for name, _made in triggers:
                cursor.execute(f"DROP TRIGGER {self.quote_name(name)}")
            super()._remake_table(*words, **more)
            for _name, made in triggers:
                try:
                    cursor.execute(made)
                except OperationalError:
                    continue
