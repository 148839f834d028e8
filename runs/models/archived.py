"""The archive: a second table for each of the four that grow with every step, and one reading of both.

The cold tables are made from the hot ones, column by column, so that neither has one that the other lacks. A row is in
exactly one of the two, whenever one looks: `everywhere` reads both in one statement. Nothing is written by way of it.
"""

from __future__ import annotations

from typing import Any, TypeVar  # a model's class attributes

from django.core.exceptions import FieldError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.sql import Query
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.datastructures import BaseTable, Join

from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.remark import Remark
from runs.models.signal import Signal

Row = TypeVar("Row", bound=models.Model)


def _like(field: models.Field[Any, Any]) -> models.Field[Any, Any]:
    """The same column. Ids are given by the hot table; what they refer to may have moved, so nothing looks for it."""
    if field.primary_key:
        return models.BigIntegerField(primary_key=True)
    if isinstance(field, models.ForeignKey):
        return models.ForeignKey(
            field.remote_field.model,
            null=field.null,
            blank=field.blank,
            on_delete=models.DO_NOTHING,
            related_name="+",
            db_constraint=False,
            db_index=False,
        )
    return field.clone()


def _cold(hot: type[models.Model], name: str, *, once: list[models.BaseConstraint], read: Any = ()) -> Any:
    columns = {field.name: _like(field) for field in hot._meta.local_concrete_fields}
    meta = type("Meta", (), {"constraints": once, "indexes": list(read), "default_permissions": ()})
    about = f"What was a {hot.__name__}, column by column, of an archived run."
    return type(name, (models.Model,), {**columns, "Meta": meta, "__module__": __name__, "__doc__": about})


ArchivedCheckpoint = _cold(
    Checkpoint,
    "ArchivedCheckpoint",
    # also the index of every read: one run's chain in order
    once=[models.UniqueConstraint(fields=["run", "seq"], name="archived_checkpoint_seq_once")],
)
ArchivedEntry = _cold(
    LedgerEntry,
    "ArchivedEntry",
    # also the index of every read
    once=[models.UniqueConstraint(fields=["run", "step", "key"], name="archived_entry_key_once_a_step")],
)
ArchivedRemark = _cold(
    Remark,
    "ArchivedRemark",
    once=[],
    read=[
        models.Index(fields=["run"], name="archived_remark_of_run"),  # the run's page
    ],
)
ArchivedSignal = _cold(
    Signal,
    "ArchivedSignal",
    # also the index of who sends a signal again
    once=[
        models.UniqueConstraint(
            fields=["run", "key"], condition=Q(key__isnull=False), name="archived_signal_key_once_a_run"
        )
    ],
    read=[models.Index(fields=["run", "id"], name="archived_signal_of_run")],  # the mailbox
)

# hot -> cold, in the order in which they are moved: who refers to others goes before them
COLD: dict[type[models.Model], type[models.Model]] = {
    Remark: ArchivedRemark,
    Signal: ArchivedSignal,
    LedgerEntry: ArchivedEntry,
    Checkpoint: ArchivedCheckpoint,
}
COLD_TABLES = {hot._meta.db_table: cold._meta.db_table for hot, cold in COLD.items()}


def columns(hot: type[models.Model]) -> list[str]:
    """Those that both tables have, which are all."""
    return [field.column for field in hot._meta.local_concrete_fields]


class BothTables(BaseTable):
    """A hot table in FROM, together with its cold one, under the hot one's name."""

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        quote = connection.ops.quote_name
        names = ", ".join(map(quote, columns(compiler.query.model)))
        hot, cold = quote(self.table_name), quote(COLD_TABLES[self.table_name])
        both = f"SELECT {names} FROM {hot} UNION ALL SELECT {names} FROM {cold}"
        return f"({both}) {compiler.quote_name_unless_alias(self.table_alias)}", []


class NoJoin(Join):
    """What a row refers to may have moved as well, and SQLite would read all of a cold table for a join with it."""

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        if self.table_name in COLD_TABLES:
            raise FieldError(
                f"{self.table_name} cannot be joined here: its rows may be in the archive. Read them by their ids."
            )
        return super().as_sql(compiler, connection)


class OfBoth(Query):
    base_table_class = BothTables
    join_class = NoJoin


def everywhere(rows: type[Row]) -> models.QuerySet[Row]:
    """Rows of a hot model wherever they stand, as objects of that model.

    Other rows that may be in the archive cannot be joined (`select_related`): FieldError says so.
    """
    return rows._default_manager._queryset_class(rows, query=OfBoth(rows))
