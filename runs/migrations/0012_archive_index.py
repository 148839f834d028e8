"""Families that ended long ago are found in order of their end."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


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
    dependencies = [("runs", "0011_archive")]

    operations = [
        AddIndexBesideWriters(
            model_name="run",
            index=models.Index(
                condition=models.Q(archived_at=None, finished_at__isnull=False, parent=None),
                fields=["finished_at", "id"],
                name="run_to_archive",
            ),
        ),
    ]
