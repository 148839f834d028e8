"""What is told about approvals, to whom: occasions, notices, targets, and what people do not want."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import approvals.models.target
import runs.engine.ids


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0004_absences"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="NoticeWish",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="notice_wish",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("unwanted", models.JSONField(blank=True, default=list)),
            ],
        ),
        migrations.CreateModel(
            name="Target",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                ("channel", models.CharField(max_length=7)),
                ("sealed", models.TextField(editable=False)),
                (
                    "graph",
                    models.CharField(
                        blank=True, default="", help_text="Only of this graph; empty: of all.", max_length=100
                    ),
                ),
                (
                    "reviewer",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Only what this user or group is asked; empty: all.",
                        max_length=150,
                    ),
                ),
                (
                    "occasions",
                    models.JSONField(
                        default=approvals.models.target.every_occasion, help_text="Of which it is told."
                    ),
                ),
                ("is_on", models.BooleanField(default=True)),
                (
                    "key_number",
                    models.PositiveIntegerField(default=1, help_text="Raise it for another signing key."),
                ),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.TextField(blank=True, default="")),
                (
                    "sent_at",
                    models.DateTimeField(blank=True, help_text="When it last took a notice.", null=True),
                ),
            ],
            options={
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("channel__in", ("chat", "webhook"))), name="target_channel_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Occasion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveIntegerField(help_text="Of the row in the trail that tells of it.")),
                ("kind", models.CharField(max_length=10)),
                ("at", models.DateTimeField()),
                (
                    "look_at",
                    models.DateTimeField(
                        blank=True, help_text="When a chore finds out whom to tell; none: it has.", null=True
                    ),
                ),
                (
                    "approval",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="occasions",
                        to="approvals.approval",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=["look_at"],
                        name="occasion_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("approval", "seq"), name="occasion_once"),
                    models.CheckConstraint(
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
                                ),
                            )
                        ),
                        name="occasion_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=runs.engine.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("occasion", models.CharField(max_length=10)),
                (
                    "round",
                    models.PositiveIntegerField(
                        help_text="Tells one reminder from the next, and an edit from the one before."
                    ),
                ),
                ("channel", models.CharField(max_length=7)),
                ("status", models.CharField(default="waiting", max_length=7)),
                ("made_at", models.DateTimeField()),
                (
                    "send_at",
                    models.DateTimeField(
                        blank=True, help_text="When it is tried next; none: it is over.", null=True
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True, default="", help_text="Of the last try.")),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="approvals.approval",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="approvals.target",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "waiting")), fields=["send_at"], name="notice_due"
                    ),
                    models.Index(
                        condition=models.Q(("status", "failed")), fields=["-made_at"], name="notice_failed"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("person__isnull", False)),
                        fields=("approval", "occasion", "round", "channel", "person"),
                        name="notice_once_a_person",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("target__isnull", False)),
                        fields=("approval", "occasion", "round", "target"),
                        name="notice_once_a_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("person__isnull", False), ("target", None)),
                            models.Q(("person", None), ("target__isnull", False)),
                            _connector="OR",
                        ),
                        name="notice_has_one_address",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ("waiting", "sent", "failed", "dropped"))),
                        name="notice_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("channel__in", ("mail", "chat", "webhook"))),
                        name="notice_channel_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("send_at__isnull", False), ("status", "waiting")),
                            models.Q(models.Q(("status", "waiting"), _negated=True), ("send_at", None)),
                            _connector="OR",
                        ),
                        name="notice_waits_for_a_moment",
                    ),
                ],
            },
        ),
    ]
