"""A child's end is told to its parent after it; the starts of a limit are kept as they fell."""

import datetime

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="laneuse",
            name="idle_at",
            field=models.DateTimeField(
                db_default=models.Value(datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                help_text="From when on none of them counts.",
            ),
        ),
        migrations.AddField(
            model_name="laneuse",
            name="window",
            field=models.TextField(db_default="", default="", help_text="The starts that still count."),
        ),
        migrations.AddField(
            model_name="queuelimit",
            name="window",
            field=models.TextField(
                db_default="", default="", editable=False, help_text="The starts that still count."
            ),
        ),
        migrations.AlterField(
            model_name="laneuse",
            name="free_at",
            field=models.DateTimeField(
                default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                help_text="From when on one more may start.",
            ),
        ),
        migrations.AlterField(
            model_name="queuelimit",
            name="free_at",
            field=models.DateTimeField(
                default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                editable=False,
                help_text="From when on one more may start.",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="told",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The status that its parent was told, once, after its end.",
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="UntoldEnd",
            fields=[
                (
                    "child",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="untold_end",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("parent", models.UUIDField()),
                ("status", models.CharField(help_text="How it ended.", max_length=12)),
                (
                    "at",
                    models.DateTimeField(help_text="When a chore tells it, if nobody has done so before."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["parent"], name="untold_of_parent"),
                    models.Index(fields=["at"], name="untold_due"),
                ],
            },
        ),
    ]
