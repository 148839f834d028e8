"""Changes of tables on SQLite that leave the triggers as they were.

For most changes Django makes a table anew: it copies the rows, drops the table, its triggers with it, and renames the
copy, which SQLite refuses while a trigger of any other table names the one that is gone. It refuses as well to drop a
column that a trigger names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self  # models and fields, as Django passes them

from django.db import OperationalError
from django.db.backends.sqlite3.schema import DatabaseSchemaEditor


class SchemaEditor(DatabaseSchemaEditor):
    _laid_aside = False

    def __enter__(self) -> Self:
        """On a connection of its own: a TEMP trigger on the one before would stand in the way as well, unseen."""
        if not self.connection.in_atomic_block and not self.connection.is_in_memory_db():
            self.connection.close()
        return super().__enter__()

    def _remake_table(self, *words: Any, **more: Any) -> None:
        with self._triggers_laid_aside():
            super()._remake_table(*words, **more)

    def remove_field(self, model: Any, field: Any) -> None:
        with self._triggers_laid_aside(but_those_with=(model._meta.db_table, field.column or "")):
            super().remove_field(model, field)

    def delete_model(self, model: Any, handle_autom2m: bool = True) -> None:
        gone = () if self._laid_aside else (model._meta.db_table,)  # within a remaking it comes again
        with self._triggers_laid_aside(but_those_with=gone):
            super().delete_model(model, handle_autom2m)

    @contextmanager
    def _triggers_laid_aside(self, but_those_with: tuple[str, ...] = ()) -> Iterator[None]:
        """All are put back in the same transaction, but those that name what is gone: a table, or one and its column.

        One that no longer fits its table is left to whoever made it: ours are written anew after each migrate
        (runs/engine/triggers.py).
        """
        if self._laid_aside:
            yield
            return
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
            for name, _made in triggers:
                cursor.execute(f"DROP TRIGGER {self.quote_name(name)}")
            self._laid_aside = True
            try:
                yield
            finally:
                self._laid_aside = False
            for _name, made in triggers:
                if but_those_with and all(_names(made, word) for word in but_those_with):
                    continue
                try:
                    cursor.execute(made)
                except OperationalError:
                    continue


def _names(statement: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", statement) is not None
