"""Runs that start by themselves; limits of queues and their lanes; graphs that are stopped."""

import datetime

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0005_families"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GraphStop",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("graph", models.CharField(max_length=100, unique=True)),
                ("reason", models.TextField()),
                ("by", models.CharField(editable=False, max_length=200)),
                ("at", models.DateTimeField(editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="LaneUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("lane", models.CharField(blank=True, max_length=100)),
                ("served_at", models.DateTimeField()),
                (
                    "free_at",
                    models.DateTimeField(default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                ),
            ],
        ),
        migrations.CreateModel(
            name="QueueLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue", models.CharField(max_length=50, unique=True)),
                (
                    "at_once",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Runs driven at a time.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "at_once_a_lane",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="The same of each lane.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "starts",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Runs that begin in a period.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "starts_a_lane",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="The same of each lane.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "per_seconds",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="How long the period is.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "free_at",
                    models.DateTimeField(
                        default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                        editable=False,
                        help_text="When the starts so far are made up for.",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "graph",
                    models.CharField(
                        help_text="A run of its newest version starts at each slot.", max_length=100
                    ),
                ),
                ("name", models.CharField(help_text="It stands in the keys of the runs.", max_length=100)),
                (
                    "cron",
                    models.CharField(
                        help_text="Minute, hour, day of the month, month, day of the week: 30 2 * * 1-5.",
                        max_length=100,
                    ),
                ),
                (
                    "zone",
                    models.CharField(
                        default="UTC",
                        help_text="Such as Europe/Berlin.",
                        max_length=100,
                        verbose_name="time zone",
                    ),
                ),
                (
                    "input",
                    models.TextField(
                        blank=True, default="{}", help_text="The first state of each run, as JSON."
                    ),
                ),
                (
                    "slot_field",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The field of the state that gets the moment at which the run was due; or none.",
                        max_length=100,
                    ),
                ),
                (
                    "catch_up",
                    models.CharField(
                        choices=[
                            ("latest", "the latest slot starts one run"),
                            ("all", "each of them starts a run, the latest so many"),
                            ("none", "nothing is started more than five minutes late"),
                        ],
                        default="latest",
                        help_text="When several slots have passed, because no worker was there.",
                        max_length=10,
                    ),
                ),
                (
                    "most",
                    models.PositiveSmallIntegerField(
                        default=10,
                        help_text="So many runs for slots that have passed, where each starts one.",
                        verbose_name="at most",
                    ),
                ),
                ("declared", models.BooleanField(default=False, help_text="By the graph's author, in code.")),
                (
                    "version",
                    models.IntegerField(default=0, help_text="The version of the graph that declared it."),
                ),
                ("done_until", models.DateTimeField(help_text="The slots up to here are dealt with.")),
                (
                    "due_at",
                    models.DateTimeField(blank=True, help_text="When a worker should look next.", null=True),
                ),
                (
                    "latest_slot",
                    models.DateTimeField(blank=True, help_text="The latest that started a run.", null=True),
                ),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("paused_by", models.CharField(blank=True, default="", max_length=200)),
                (
                    "withdrawn_at",
                    models.DateTimeField(blank=True, help_text="The code declares it no more.", null=True),
                ),
                (
                    "fault",
                    models.TextField(blank=True, default="", help_text="Why the latest slot has no run yet."),
                ),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="lane",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Whose turn it takes in a limited queue, such as a customer's.",
                max_length=100,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("wake_at__isnull", False), models.Q(("lane", ""), _negated=True)),
                fields=["queue", "lane", "wake_at"],
                name="run_in_lane",
            ),
        ),
        migrations.AddConstraint(
            model_name="graphstop",
            constraint=models.CheckConstraint(
                condition=models.Q(("graph__regex", "\\S")), name="stop_graph_not_blank"
            ),
        ),
        migrations.AddConstraint(
            model_name="queuelimit",
            constraint=models.CheckConstraint(
                condition=models.Q(("queue__regex", "\\S")), name="limit_queue_not_blank"
            ),
        ),
        migrations.AddConstraint(
            model_name="queuelimit",
            constraint=models.CheckConstraint(
                condition=models.Q(("per_seconds__gte", 1)), name="limit_has_a_period"
            ),
        ),
        migrations.AddField(
            model_name="laneuse",
            name="limit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="uses",
                to="runs.queuelimit",
            ),
        ),
        migrations.AddField(
            model_name="schedule",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                help_text="Who asks for its runs, and may not approve what they do.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="schedules",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="laneuse",
            constraint=models.UniqueConstraint(fields=("limit", "lane"), name="lane_use_once"),
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="schedule_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.UniqueConstraint(fields=("graph", "name"), name="schedule_name_once_a_graph"),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("name__regex", "\\S")), name="schedule_name_not_blank"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("catch_up__in", ("latest", "all", "none"))),
                name="schedule_catch_up_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("due_at", None), models.Q(("paused_at", None), ("withdrawn_at", None)), _connector="OR"
                ),
                name="schedule_due_only_while_active",
            ),
        ),
    ]
