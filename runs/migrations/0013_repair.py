"""Entries that a repair puts aside; runs that are forks of others."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0012_archive_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="archivedentry",
            name="aside",
            field=models.BooleanField(
                db_default=False, default=False, help_text="By a repair: asked again, it is a new entry."
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="copied_from",
            field=models.BigIntegerField(
                blank=True,
                help_text="In a fork: the id of the entry that it repeats, of the run it is from.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="aside",
            field=models.BooleanField(
                db_default=False, default=False, help_text="By a repair: asked again, it is a new entry."
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="copied_from",
            field=models.BigIntegerField(
                blank=True,
                help_text="In a fork: the id of the entry that it repeats, of the run it is from.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="origin",
            field=models.UUIDField(blank=True, help_text="The run that it is a fork of.", null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="origin_seq",
            field=models.IntegerField(
                blank=True, help_text="The checkpoint of that run with which it began.", null=True
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="told_kind",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The error kind that its parent was told, once it was repaired afterwards.",
                max_length=12,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("origin__isnull", False)), fields=["origin"], name="run_forks"
            ),
        ),
    ]
