"""Runs that are kept are found without a walk through all of them."""

from __future__ import annotations

import importlib

from django.db import migrations, models

AddIndexBesideWriters = importlib.import_module("runs.migrations.0012_archive_index").AddIndexBesideWriters


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0013_repair")]

    operations = [
        AddIndexBesideWriters(
            model_name="run",
            index=models.Index(condition=models.Q(kept=True), fields=["id"], name="run_kept"),
        ),
    ]
