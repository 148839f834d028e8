"""The archive: a cold table beside each of the four that grow, and what says that a run is in it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.state import StateApps


def keep_what_is_archived(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Backwards: rows of archived runs are in these tables alone."""
    archived = apps.get_model("runs", "Archival").objects.using(schema_editor.connection.alias).count()
    if archived:
        raise IrreversibleError(
            f"{archived} runs are in the archive, which goes with its tables, and nothing brings them back: "
            "stay with this version. Nothing of it was changed."
        )


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0010_every_blank"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Archival",
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
                        help_text="When it began: nothing brings the run back from then on."
                    ),
                ),
                ("head", models.CharField(help_text="Digest of the run's last checkpoint.", max_length=64)),
                (
                    "archived_at",
                    models.DateTimeField(blank=True, help_text="When nothing was left to move.", null=True),
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
        migrations.CreateModel(
            name="ArchivedCheckpoint",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("seq", models.IntegerField()),
                ("kind", models.CharField(max_length=12)),
                ("step", models.IntegerField()),
                ("node", models.CharField(max_length=100)),
                ("status", models.CharField(max_length=12)),
                ("version", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("fence", models.BigIntegerField()),
                (
                    "body",
                    models.TextField(
                        help_text="A snapshot, an RFC 6902 patch against the state before, or nothing."
                    ),
                ),
                ("snapshot", models.BooleanField(default=False)),
                ("actor", models.CharField(max_length=200)),
                ("reason", models.TextField(blank=True, default="")),
                ("at", models.DateTimeField()),
                (
                    "entries",
                    models.TextField(
                        default="[]", help_text="The ledger entries that changed since the one before."
                    ),
                ),
                ("body_digest", models.CharField(max_length=64)),
                ("salt", models.BinaryField(max_length=16)),
                ("digest", models.CharField(max_length=64)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ArchivedEntry",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "step",
                    models.IntegerField(help_text="The step in progress when it was asked: Run.step + 1."),
                ),
                ("key", models.CharField(help_text="As written, {run_id} unresolved.", max_length=200)),
                ("kind", models.CharField(max_length=10)),
                ("name", models.CharField(max_length=200)),
                ("request", models.TextField()),
                ("request_digest", models.CharField(max_length=64)),
                ("idempotency_key", models.CharField(blank=True, max_length=300, null=True, unique=True)),
                (
                    "write",
                    models.BooleanField(default=False, help_text="An effect that changes the world outside."),
                ),
                ("status", models.CharField(default="open", max_length=12)),
                ("result", models.TextField(blank=True, null=True)),
                ("error_kind", models.CharField(blank=True, default="", max_length=12)),
                ("error", models.TextField(blank=True, default="")),
                ("attempts", models.IntegerField(default=0)),
                (
                    "tried_at",
                    models.DateTimeField(
                        blank=True, help_text="A call may be under way since then.", null=True
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Deadline of a wait; of a tried write: from when it may be resolved.",
                        null=True,
                    ),
                ),
                ("opened_at", models.DateTimeField()),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("answered_by", models.CharField(blank=True, default="", max_length=200)),
                ("effective_at", models.DateTimeField(blank=True, null=True)),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
                (
                    "awaited",
                    models.BooleanField(default=False, help_text="The parked run waits for this one."),
                ),
                ("approved_digest", models.CharField(blank=True, default="", max_length=64)),
                ("approval_head", models.CharField(blank=True, default="", max_length=64)),
                (
                    "compensation",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Name of what undoes it, as declared when it was called.",
                        max_length=200,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ArchivedRemark",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", models.CharField(help_text="late_result, other_request", max_length=20)),
                ("worker", models.CharField(blank=True, default="", max_length=120)),
                ("fence", models.BigIntegerField()),
                ("body", models.TextField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ArchivedSignal",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
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
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ArchiveRound",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("look_at", models.DateTimeField()),
                (
                    "after_at",
                    models.DateTimeField(
                        blank=True, help_text="When the last one looked at ended.", null=True
                    ),
                ),
                ("after_run", models.UUIDField(blank=True, help_text="Which that was.", null=True)),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="archived_at",
            field=models.DateTimeField(
                blank=True,
                help_text="Since when its rows are in the archive, or on their way there.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="checkpoint",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hot_checkpoints",
                related_query_name="checkpoints",
                to="runs.run",
            ),
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hot_entries",
                related_query_name="entries",
                to="runs.run",
            ),
        ),
        migrations.AlterField(
            model_name="remark",
            name="entry",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AlterField(
            model_name="remark",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hot_remarks",
                related_query_name="remarks",
                to="runs.run",
            ),
        ),
        migrations.AlterField(
            model_name="signal",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hot_signals",
                related_query_name="signals",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="archival",
            name="run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="archival", to="runs.run"
            ),
        ),
        migrations.AddField(
            model_name="archivedcheckpoint",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="child",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="compensates",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="decided_by",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="archivedentry",
            name="settles",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="archivedremark",
            name="entry",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="archivedremark",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="archivedsignal",
            name="consumed_by",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.ledgerentry",
            ),
        ),
        migrations.AddField(
            model_name="archivedsignal",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddIndex(
            model_name="archival",
            index=models.Index(
                condition=models.Q(("go_on_at__isnull", False)), fields=["go_on_at"], name="archival_to_go_on"
            ),
        ),
        migrations.AddConstraint(
            model_name="archival",
            constraint=models.CheckConstraint(
                condition=models.Q(("archived_at", None), ("go_on_at", None), _connector="OR"),
                name="archival_ends_once_archived",
            ),
        ),
        migrations.AddConstraint(
            model_name="archival",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "reason__regex",
                        "[^\\u0009-\\u000d\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]",
                    )
                ),
                name="archival_says_why",
            ),
        ),
        migrations.AddConstraint(
            model_name="archivedcheckpoint",
            constraint=models.UniqueConstraint(fields=("run", "seq"), name="archived_checkpoint_seq_once"),
        ),
        migrations.AddConstraint(
            model_name="archivedentry",
            constraint=models.UniqueConstraint(
                fields=("run", "step", "key"), name="archived_entry_key_once_a_step"
            ),
        ),
        migrations.AddIndex(
            model_name="archivedremark",
            index=models.Index(fields=["run"], name="archived_remark_of_run"),
        ),
        migrations.AddIndex(
            model_name="archivedsignal",
            index=models.Index(fields=["run", "id"], name="archived_signal_of_run"),
        ),
        migrations.AddConstraint(
            model_name="archivedsignal",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key__isnull", False)),
                fields=("run", "key"),
                name="archived_signal_key_once_a_run",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, keep_what_is_archived),  # backwards, the first
    ]
