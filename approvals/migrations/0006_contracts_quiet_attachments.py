"""Answers in contracts, quiet hours, mentions and attachments; drafts that rest."""

from __future__ import annotations

from datetime import timedelta

import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone


def rest(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """What was typed about a decided question is kept for a week from now."""
    drafts = apps.get_model("approvals", "KeptDraft").objects.exclude(approval__outcome="")
    drafts.update(forget_at=timezone.now() + timedelta(days=7))


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0005_notices"),
        ("runs", "0008_retention"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(help_text="As it is saved under; cleaned.", max_length=100)),
                (
                    "media_type",
                    models.CharField(help_text="Told from its bytes, not from its name.", max_length=100),
                ),
                ("size", models.PositiveBigIntegerField(help_text="In bytes.")),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ("pk",),
            },
        ),
        migrations.RemoveConstraint(
            model_name="activity",
            name="activity_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_status_known",
        ),
        migrations.RemoveConstraint(
            model_name="occasion",
            name="occasion_known",
        ),
        migrations.AddField(
            model_name="approval",
            name="has_broken_form",
            field=models.BooleanField(
                default=False, help_text="Its schema is none, so that it can only be answered as JSON."
            ),
        ),
        migrations.AddField(
            model_name="keptdraft",
            name="forget_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When a chore takes it away; none while the question is open.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="held",
            field=models.BooleanField(
                default=False, help_text="It waited for the end of its person's quiet hours."
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="lead",
            field=models.ForeignKey(
                blank=True,
                help_text="The notice in whose mail this one stands.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="bundled",
                to="approvals.notice",
            ),
        ),
        migrations.AddField(
            model_name="noticewish",
            name="quiet_from",
            field=models.TimeField(blank=True, help_text="Mail is held from then; none: never.", null=True),
        ),
        migrations.AddField(
            model_name="noticewish",
            name="quiet_until",
            field=models.TimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="noticewish",
            name="zone",
            field=models.CharField(blank=True, default="", help_text="Whose clock that is.", max_length=64),
        ),
        migrations.AddIndex(
            model_name="keptdraft",
            index=models.Index(
                condition=models.Q(("forget_at__isnull", False)), fields=["forget_at"], name="draft_forget"
            ),
        ),
        migrations.AddConstraint(
            model_name="activity",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        (
                            "opened",
                            "commented",
                            "attached",
                            "claimed",
                            "released",
                            "assigned",
                            "delegated",
                            "recalled",
                            "reminded",
                            "escalated",
                            "extended",
                            "undone",
                            "taken_back",
                            "late",
                            "refused",
                            "expired",
                            "closed",
                        ),
                    )
                ),
                name="activity_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ("waiting", "sent", "failed", "dropped", "bundled"))),
                name="notice_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="occasion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        (
                            "asked",
                            "reminded",
                            "escalated",
                            "assigned",
                            "decided",
                            "expired",
                            "closed",
                            "reopened",
                            "mentioned",
                        ),
                    )
                ),
                name="occasion_known",
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="activity",
            field=models.OneToOneField(
                help_text="Its row in the trail.",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="attachment",
                to="approvals.activity",
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="approval",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="attachments",
                to="approvals.approval",
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="blob",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.blob"
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.RunPython(rest, migrations.RunPython.noop),
    ]
