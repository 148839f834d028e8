"""What is kept, what was erased, and blobs that nobody may refer to any more."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0007_tool_rates_and_streams"),
    ]

    operations = [
        migrations.CreateModel(
            name="Tombstone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("by", models.CharField(max_length=200)),
                ("reason", models.TextField()),
                (
                    "at",
                    models.DateTimeField(
                        help_text="When the erasure began: nothing brings the run back from then on."
                    ),
                ),
                ("head", models.CharField(help_text="Digest of the run's last checkpoint.", max_length=64)),
                (
                    "rest",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Digest of all rows of the run as they remain.",
                        max_length=64,
                    ),
                ),
                (
                    "erased_at",
                    models.DateTimeField(blank=True, help_text="When nothing was left to remove.", null=True),
                ),
                (
                    "go_on_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Of the top of a family: when a worker goes on with it.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.AlterModelOptions(
            name="run",
            options={
                "permissions": [
                    ("view_all", "Can see every run"),
                    ("repair", "Can repair runs of every graph"),
                    ("audit", "Can read the trail of every run"),
                    ("erase", "Can keep runs, and erase ended ones"),
                ]
            },
        ),
        migrations.RemoveField(
            model_name="run",
            name="keep",
        ),
        migrations.AddField(
            model_name="blob",
            name="sweep_at",
            field=models.DateTimeField(
                blank=True,
                help_text="A use of it was removed: when to look whether it was the last.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="kept",
            field=models.BooleanField(
                default=False, help_text="At the top of a family: it is neither erased nor archived."
            ),
        ),
        migrations.AlterField(
            model_name="blob",
            name="touched_at",
            field=models.DateTimeField(help_text="When somebody last wanted it."),
        ),
        migrations.AddIndex(
            model_name="blob",
            index=models.Index(
                condition=models.Q(("sweep_at__isnull", False)), fields=["sweep_at"], name="blob_to_sweep"
            ),
        ),
        migrations.AddField(
            model_name="tombstone",
            name="run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="tombstone", to="runs.run"
            ),
        ),
        migrations.AddIndex(
            model_name="tombstone",
            index=models.Index(
                condition=models.Q(("go_on_at__isnull", False)),
                fields=["go_on_at"],
                name="tombstone_to_go_on",
            ),
        ),
        migrations.AddConstraint(
            model_name="tombstone",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("erased_at", None), ("rest", "")),
                    models.Q(
                        ("erased_at__isnull", False),
                        ("go_on_at", None),
                        models.Q(("rest", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="tombstone_sealed_when_erased",
            ),
        ),
        migrations.AddConstraint(
            model_name="tombstone",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason__regex", "\\S")), name="tombstone_says_why"
            ),
        ),
    ]
