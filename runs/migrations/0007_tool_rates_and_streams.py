"""Rates of tools, counted by all workers; and what a call says while it is under way."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_schedules_and_limits"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolRate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "per_key",
                    models.CharField(
                        blank=True, default="", help_text="Digest of the value that it is by.", max_length=64
                    ),
                ),
                (
                    "window",
                    models.TextField(
                        default="", help_text="The calls that still count, and how far the line reaches."
                    ),
                ),
                ("idle_at", models.DateTimeField(help_text="From when on nothing counts.", null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("name", "per_key"), name="tool_rate_once")],
            },
        ),
        migrations.CreateModel(
            name="LiveText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("step", models.IntegerField()),
                ("key", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=200)),
                ("fence", models.BigIntegerField()),
                ("text", models.TextField()),
                (
                    "letters",
                    models.IntegerField(
                        help_text="All that it said so far; of a long one only the end is kept."
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="live_texts",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("run", "step", "key"), name="live_text_once_a_call")
                ],
            },
        ),
    ]
