"""Whom nobody was named to decide is told by its row: what needs attention is found without asking each."""

from __future__ import annotations

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def mark_unnamed(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    named = apps.get_model("approvals", "Reviewer").objects.filter(
        approval=models.OuterRef("pk"), excluded=False
    )
    still_open = apps.get_model("approvals", "Approval").objects.filter(outcome="")
    still_open.exclude(models.Exists(named)).update(is_unnamed=True)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_search")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="is_unnamed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Nobody was named to decide it when it was asked.",
            ),
        ),
        migrations.RunPython(mark_unnamed, migrations.RunPython.noop, elidable=True),
    ]
