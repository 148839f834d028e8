"""Conditions on approvals, written in SQL: a page asks for a dozen, and Django takes a millisecond to write each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # values of a statement, and Django's expressions

from django.db import connection
from django.db.models import BooleanField, Expression, F, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class Condition(Expression):
    """Over Approval. In `text`, {row} is the approval; tables in it have names that Django gives none (U0, T4).

    What a row is asked is written as a subquery for one value, `(SELECT ... LIMIT 1) IS NOT NULL`: PostgreSQL asks it
    of each row on the way, takes it to be true of nearly all, and so walks the list in its order until a page is full.
    """

    def __init__(self, text: str, *values: Any, output_field: Field | None = None) -> None:
        super().__init__(output_field=output_field or BooleanField())
        self.text, self.values, self.row = text, values, F("pk")

    def get_source_expressions(self) -> list[Any]:
        return [self.row]

    def set_source_expressions(self, expressions: Sequence[Any]) -> None:
        (self.row,) = expressions

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        return f"({self.text.replace('{row}', compiler.quote_name_unless_alias(self.row.alias))})", list(
            self.values
        )


def one_of(values: Sequence[str]) -> tuple[str, list[Any]]:
    """`IN (...)` and its values, of which there is one at least; as one value where the database takes that."""
    if connection.vendor == "postgresql":
        return "= ANY(%s)", [list(values)]
    return f"IN ({', '.join(['%s'] * len(values))})", list(values)
