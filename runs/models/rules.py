"""What must hold in every row, said by the database itself, at no cost to the statement of a step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.backends.ddl_references import Statement

# A character that is no blank. Python's blanks, each by its number: PostgreSQL's \s are those of the locale, often only
# ASCII's, and what the code refuses as blank the database would take. PostgreSQL and Python read it alike.
SEEN = r"[^\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
REFUSE = (
    "CREATE OR REPLACE FUNCTION runs_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING"
    " ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME,"
    " MESSAGE = 'a row of ' || TG_TABLE_NAME || ' breaks the rule ' || TG_NAME; END $$"
)


def not_blank(column: str) -> Q:
    """The text in it is more than what `str.strip` takes away."""
    return Q(**{f"{column}__regex": SEEN})


class Rule(models.CheckConstraint):
    """A check constraint; on PostgreSQL a trigger on just the columns that it names, with the same error.

    PostgreSQL reads every check of a table anew from its stored text for each statement that writes a row, whatever
    columns that sets: seven on runs_run took as long as the rest of a step's statement (docs/adr/0011).
    """

    def constraint_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor
    ) -> str | None:
        if schema_editor.connection.vendor != "postgresql":
            return super().constraint_sql(model, schema_editor)
        schema_editor.deferred_sql.append(self.create_sql(model, schema_editor))
        return None

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor
    ) -> str | Statement | None:
        if schema_editor.connection.vendor != "postgresql":
            return super().create_sql(model, schema_editor)
        quote = schema_editor.quote_name
        columns = [
            quote(model._meta.get_field(name).column)
            for name in sorted(self.condition.referenced_base_fields)
        ]
        condition = self._get_check_sql(model, schema_editor)
        for column in columns:  # a quoted name is a column everywhere in it
            condition = re.sub(rf"(?<![.\w]){re.escape(column)}", f"NEW.{column}", condition)
        return (
            f"{REFUSE}; CREATE TRIGGER {quote(self.name)} BEFORE INSERT OR UPDATE OF {', '.join(columns)}"
            f" ON {quote(model._meta.db_table)} FOR EACH ROW WHEN (NOT ({condition})) EXECUTE FUNCTION runs_refuse()"
        )

    def remove_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor
    ) -> str | Statement | None:
        if schema_editor.connection.vendor != "postgresql":
            return super().remove_sql(model, schema_editor)
        quote = schema_editor.quote_name
        return f"DROP TRIGGER IF EXISTS {quote(self.name)} ON {quote(model._meta.db_table)}"
