"""Indexes that hold all that is asked of a name: where somebody was asked often, a row was read for each time."""

from __future__ import annotations

import importlib

from django.db import migrations, models
from django.db.models.functions import Upper

AddIndexBesideWriters = importlib.import_module(
    "approvals.migrations.0011_quick_indexes"
).AddIndexBesideWriters


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0012_language_of_targets")]

    operations = [
        AddIndexBesideWriters(
            model_name="reviewer",
            index=models.Index(fields=["name", "approval", "excluded"], name="reviewer_named"),
        ),
        AddIndexBesideWriters(
            model_name="reviewer",
            index=models.Index(Upper("name"), "approval", "live", name="reviewer_any_case"),
        ),
        AddIndexBesideWriters(
            model_name="reviewer",
            index=models.Index(
                condition=models.Q(live=True),
                fields=["name", "approval", "excluded"],
                name="reviewer_named_live",
            ),
        ),
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(fields=["id", "run"], name="approval_to_run"),
        ),
        AddIndexBesideWriters(
            model_name="approval",
            index=models.Index(
                fields=["run", "outcome", "decided_at", "id", "opened_at"], name="approval_of_run"
            ),
        ),
        *(
            migrations.RemoveIndex(model_name="reviewer", name=name)
            for name in ("reviewer_by_name", "reviewer_by_any_case", "reviewer_live")
        ),
    ]
