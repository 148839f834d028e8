"""What is blank in code is blank in both databases: the check names Python's blanks instead of the locale's."""

from __future__ import annotations

import importlib

from django.db import migrations

instead = importlib.import_module("runs.migrations.0010_every_blank").instead


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_quick_looks"), ("runs", "0010_every_blank")]

    operations = instead("decision", "decision_operation_not_blank", "operation_id")
