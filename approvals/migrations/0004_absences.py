"""Who decides for whom while they are away."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0003_inbox"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Absence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                (
                    "look_at",
                    models.DateTimeField(
                        blank=True, help_text="When a chore looks next; none: it is over.", null=True
                    ),
                ),
                (
                    "deputy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="absences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("since",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)), fields=["look_at"], name="absence_due"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("until__gte", models.F("since"))),
                        name="absence_ends_after_it_begins",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=("person",),
                        name="absence_one_at_a_time",
                    ),
                ],
            },
        ),
    ]
