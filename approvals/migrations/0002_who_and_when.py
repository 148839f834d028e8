"""Stages, parts given to others, reminders and escalation, and what signs a decision."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_rows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="activity",
            name="activity_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="reviewer",
            name="reviewer_named_once",
        ),
        migrations.AddField(
            model_name="approval",
            name="escalate_at",
            field=models.DateTimeField(
                blank=True, help_text="From when others are asked as well, if it is still open.", null=True
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="remind_at",
            field=models.DateTimeField(blank=True, help_text="When a reminder is due next.", null=True),
        ),
        migrations.AddField(
            model_name="approval",
            name="stage",
            field=models.PositiveSmallIntegerField(default=1, help_text="The one that decides now, from 1."),
        ),
        migrations.AddField(
            model_name="approval",
            name="stages",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Of each: name, quorum, and whether the proposal needs it; empty: there is one.",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="instead_of",
            field=models.ForeignKey(
                blank=True,
                help_text="For whom it was said, if that person had given their part away.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="decided_by_others",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="needs",
            field=models.JSONField(
                blank=True,
                help_text="Of an edit: the numbers of the stages that its payload needs.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="signature",
            field=models.TextField(
                blank=True,
                default="",
                help_text="Canonical JSON of who signed, what it means, and the time zone.",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="stage",
            field=models.PositiveSmallIntegerField(default=1, help_text="In which it counts."),
        ),
        migrations.AddField(
            model_name="reviewer",
            name="group",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of which group this was a member when it was asked.",
                max_length=150,
            ),
        ),
        migrations.AddField(
            model_name="reviewer",
            name="instead_of",
            field=models.ForeignKey(
                blank=True,
                help_text="Who gave their part to the one named here.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="reviewer",
            name="stage",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="In which stage it is asked; what is excluded is so in all."
            ),
        ),
        migrations.AddField(
            model_name="vote",
            name="stage",
            field=models.PositiveSmallIntegerField(default=1, help_text="In which it counts."),
        ),
        migrations.AlterField(
            model_name="activity",
            name="to",
            field=models.ForeignKey(
                blank=True,
                help_text="Whom it was assigned or given to.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="approval",
            name="quorum",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="How many have to say yes to one payload, in the stage that decides now."
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("outcome", ""), ("remind_at__isnull", False)),
                fields=["remind_at"],
                name="approval_remind",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("escalate_at__isnull", False), ("outcome", "")),
                fields=["escalate_at"],
                name="approval_escalate",
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
            model_name="reviewer",
            constraint=models.UniqueConstraint(
                fields=("approval", "name", "excluded", "stage"), name="reviewer_named_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="reviewer",
            constraint=models.UniqueConstraint(
                condition=models.Q(("instead_of__isnull", False)),
                fields=("approval", "instead_of", "stage"),
                name="reviewer_part_given_once",
            ),
        ),
    ]
