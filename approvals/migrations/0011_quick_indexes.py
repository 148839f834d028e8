"""Each way to narrow the inbox, and what needs attention, begins at an index: nothing is looked through to its end."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from django.db.models.functions import Upper

OPEN = models.Q(outcome="")
AMPLE_QUORUM = 3


class AddIndexBesideWriters(migrations.AddIndex):
    """On PostgreSQL, while others read and write. What an interrupted one left is made anew."""

    atomic = False

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.index.name}")
            schema_editor.add_index(model, self.index, concurrently=True)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0010_every_blank")]

    operations = [
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(
                condition=OPEN, fields=["risk", "due_at", "opened_at", "id"], name="approval_open_of_risk"
            ),
        ),
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(condition=OPEN, fields=["opened_at"], name="approval_open_since"),
        ),
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(
                condition=OPEN
                & (
                    models.Q(has_broken_form=True)
                    | models.Q(is_unnamed=True)
                    | models.Q(stage__gt=1)
                    | models.Q(quorum__gt=AMPLE_QUORUM)
                ),
                fields=["due_at", "opened_at", "id"],
                name="approval_doubtful",
            ),
        ),
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(
                condition=~OPEN,
                fields=["graph", "-decided_at", "-id"],
                name="approval_decided_of_graph",
            ),
        ),
        AddIndexBesideWriters(
            model_name="reviewer",
            index=models.Index(Upper("name"), "approval", name="reviewer_by_any_case"),
        ),
    ]
