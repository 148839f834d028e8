"""PostgreSQL: leave room in each page, so that a step's UPDATE of its Run touches no index (HOT)."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def leave_room(apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE runs_run SET (fillfactor = 70)")


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_rows")]
    operations = [migrations.RunPython(leave_room, migrations.RunPython.noop)]
