"""What is blank in code is blank in both databases: their checks name Python's blanks instead of the locale's."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.models import CheckConstraint, Q

import runs.models.rules

SEEN = r"[^\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
PLAIN, RULE = CheckConstraint, runs.models.rules.Rule


class OnPostgres:
    """On SQLite \\S has been Python's all along, and a change of a check writes the whole table anew."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, *states)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, *states)


class Remove(OnPostgres, migrations.RemoveConstraint):
    pass


class Add(OnPostgres, migrations.AddConstraint):
    pass


def instead(
    model: str, name: str, column: str, kind: type = PLAIN, *, may_be_null: bool = False
) -> list[Any]:
    condition = Q(**{f"{column}__regex": SEEN})
    if may_be_null:
        condition = Q(**{column: None}) | condition
    return [Remove(model, name), Add(model, kind(condition=condition, name=name))]


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_ends_and_starts")]

    operations = [
        *instead("run", "run_key_not_blank", "key", RULE, may_be_null=True),
        *instead("run", "run_graph_not_blank", "graph", RULE),
        *instead("ledgerentry", "entry_key_not_blank", "key", RULE),
        *instead("ledgerentry", "entry_idempotency_key_not_blank", "idempotency_key", RULE, may_be_null=True),
        *instead("signal", "signal_name_not_blank", "name"),
        *instead("signal", "signal_key_not_blank", "key", may_be_null=True),
        *instead("queuelimit", "limit_queue_not_blank", "queue"),
        *instead("graphstop", "stop_graph_not_blank", "graph"),
        *instead("schedule", "schedule_name_not_blank", "name"),
        *instead("tombstone", "tombstone_says_why", "reason"),
    ]
