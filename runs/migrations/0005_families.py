"""Runs that other runs have started: how deep, which of many, and what their end leaves to be done."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.models.rules


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0004_compensation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FanOut",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("total", models.PositiveIntegerField(help_text="How many children there will be.")),
                ("at_once", models.PositiveIntegerField(help_text="How many of them may live at a time.")),
                ("started", models.PositiveIntegerField(default=0, help_text="Those that have a row.")),
                (
                    "released",
                    models.PositiveIntegerField(
                        default=0, help_text="Those whose turn has come: the first ones."
                    ),
                ),
                (
                    "passed",
                    models.PositiveIntegerField(
                        default=0, help_text="Of the released ones, those that have ended."
                    ),
                ),
                ("completed", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("cancelled", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="run_live_always_wakes",
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="child",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The run whose end answers it; a fan-out has many and names none.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="awaited_by",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="cascade_at",
            field=models.DateTimeField(
                blank=True,
                help_text="It has ended: when to go on cancelling what it leaves behind.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="depth",
            field=models.SmallIntegerField(default=0, help_text="How many ancestors it has."),
        ),
        migrations.AddField(
            model_name="run",
            name="detached",
            field=models.BooleanField(default=False, help_text="It goes on when its parent ends."),
        ),
        migrations.AddField(
            model_name="run",
            name="item",
            field=models.IntegerField(blank=True, help_text="Its number there, from 0.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="told",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The status that its parent was told, once, at its end.",
                max_length=12,
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(
                condition=models.Q(("child__isnull", False)), fields=["child"], name="entry_of_child"
            ),
        ),
        migrations.AddField(
            model_name="fanout",
            name="entry",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="fan_out", to="runs.ledgerentry"
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="fan_out",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The fan-out of its parent that it is one of.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="children",
                to="runs.fanout",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("cascade_at__isnull", False)),
                fields=["cascade_at"],
                name="run_to_cascade",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=runs.models.rules.Rule(
                condition=models.Q(
                    ("status", "waiting"),
                    ("status__in", ("completed", "failed", "cancelled")),
                    ("wake_at__isnull", False),
                    models.Q(("fan_out__isnull", False), ("status", "created")),
                    _connector="OR",
                ),
                name="run_live_always_wakes",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=runs.models.rules.Rule(
                condition=models.Q(("item", None), ("item__gte", 0), _connector="OR"),
                name="run_item_not_negative",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("fan_out__isnull", False)),
                fields=("fan_out", "item"),
                name="run_once_an_item",
            ),
        ),
    ]
