"""What undoes a write, and which write it was."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.models.rules


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0003_mailbox"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="ledgerentry",
            name="compensates",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The write that this one undoes.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="compensated_by",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="compensation",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Name of what undoes it, as declared when it was called.",
                max_length=200,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="ending",
            field=models.CharField(
                blank=True, default="", help_text="How it ends once what it did is undone.", max_length=12
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(
                condition=models.Q(("compensates__isnull", False)),
                fields=("compensates",),
                name="entry_compensated_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=runs.models.rules.Rule(
                condition=models.Q(
                    ("ending", ""),
                    models.Q(
                        ("ending__in", ("failed", "cancelled")),
                        ("status__in", ("running", "waiting", "retrying")),
                    ),
                    _connector="OR",
                ),
                name="run_ending_while_compensated",
            ),
        ),
    ]
