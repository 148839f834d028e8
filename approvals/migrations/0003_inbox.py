"""Find a person's inbox among a million approvals; keep drafts and filters for them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

ENDED = ("completed", "failed", "cancelled")


def let_reviewers_rest(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Nothing more is asked of runs that have ended."""
    reviewers = apps.get_model("approvals", "Reviewer").objects
    reviewers.filter(approval__run__status__in=ENDED).update(live=False)


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_who_and_when"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "json",
                    models.TextField(blank=True, default="", help_text="The edited payload as it was typed."),
                ),
                (
                    "table",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Digest of the payload that was edited.",
                        max_length=64,
                    ),
                ),
                ("reason", models.TextField(blank=True, default="", help_text="Of a rejection.")),
                ("words", models.TextField(blank=True, default="", help_text="Of an answer in words.")),
                ("comment", models.TextField(blank=True, default="")),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40)),
                ("query", models.CharField(max_length=1000)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.RemoveIndex(
            model_name="approval",
            name="approval_open",
        ),
        migrations.RemoveIndex(
            model_name="approval",
            name="approval_decided",
        ),
        migrations.AddField(
            model_name="reviewer",
            name="live",
            field=models.BooleanField(
                default=True, help_text="The run has not ended: something may still be asked."
            ),
        ),
        migrations.RunPython(let_reviewers_rest, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("outcome", "")),
                fields=["due_at", "opened_at", "id"],
                name="approval_open",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("outcome", "")),
                fields=["graph", "due_at", "opened_at", "id"],
                name="approval_open_of_graph",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("outcome", ""), _negated=True),
                fields=["-decided_at", "-id"],
                name="approval_decided",
            ),
        ),
        migrations.AddIndex(
            model_name="reviewer",
            index=models.Index(
                condition=models.Q(("live", True)), fields=["name", "approval"], name="reviewer_live"
            ),
        ),
        migrations.AddField(
            model_name="keptdraft",
            name="approval",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="kept_drafts",
                to="approvals.approval",
            ),
        ),
        migrations.AddField(
            model_name="keptdraft",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="savedfilter",
            name="person",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_filters",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="keptdraft",
            constraint=models.UniqueConstraint(fields=("approval", "person"), name="draft_once_a_person"),
        ),
        migrations.AddConstraint(
            model_name="savedfilter",
            constraint=models.UniqueConstraint(fields=("person", "name"), name="saved_filter_name_once"),
        ),
    ]
