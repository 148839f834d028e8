"""A run's mailbox: what other systems told it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0002_room_for_hot_updates"),
    ]

    operations = [
        migrations.CreateModel(
            name="Signal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("payload", models.TextField(default="null")),
                (
                    "key",
                    models.CharField(
                        blank=True, help_text="Accepted once under it.", max_length=200, null=True
                    ),
                ),
                ("by", models.CharField(max_length=200)),
                ("at", models.DateTimeField()),
                (
                    "consumed_by",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signal",
                        to="runs.ledgerentry",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signals",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run", "id"], name="signal_of_run"),
                    models.Index(
                        condition=models.Q(("consumed_by", None)),
                        fields=["run", "name"],
                        name="signal_unread",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "key"), name="signal_key_once_a_run"),
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "\\S")), name="signal_name_not_blank"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("key", None), ("key__regex", "\\S"), _connector="OR"),
                        name="signal_key_not_blank",
                    ),
                ],
            },
        ),
    ]
