"""What a transition left: append-only, each one's digest covering the one before."""

from __future__ import annotations

from django.db import models

KINDS = (
    "start",
    "claim",
    "lost",
    "wake",
    "step",
    "wait",
    "retry",
    "pace",
    "complete",
    "fail",
    "cancel",
    "hand_back",
    "migrate",
    "compensate",
    "settle",
    "repair",
    "close",
    "fork",
)


class Checkpoint(models.Model):
    # Without a constraint: a checkpoint is inserted by the statement that moves its run, or under the run's lock, and
    # no run is deleted while it has one. The database's own look would cost a tenth of each step.
    run = models.ForeignKey(
        "runs.Run",
        on_delete=models.PROTECT,
        related_name="hot_checkpoints",
        related_query_name="checkpoints",
        db_index=False,
        db_constraint=False,
    )
    seq = models.IntegerField()
    kind = models.CharField(max_length=12)
    step = models.IntegerField()
    node = models.CharField(max_length=100)
    status = models.CharField(max_length=12)
    version = models.IntegerField()
    attempt = models.IntegerField()
    fence = models.BigIntegerField()
    body = models.TextField(help_text="A snapshot, an RFC 6902 patch against the state before, or nothing.")
    snapshot = models.BooleanField(default=False)
    actor = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="")
    at = models.DateTimeField()
    entries = models.TextField(
        default="[]", help_text="The ledger entries that changed since the one before."
    )
    body_digest = models.CharField(max_length=64)
    salt = models.BinaryField(max_length=16)
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            # also the index of every read: one run's chain in order
            models.UniqueConstraint(fields=["run", "seq"], name="checkpoint_seq_once"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.seq} {self.kind}"
