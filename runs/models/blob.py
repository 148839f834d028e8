"""Large values by reference: one row a content, one use a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, OuterRef, Q

from runs import blob_holders

GRACE = timedelta(days=1)  # what nobody uses stays as long after it was last wanted


class BlobQuerySet(models.QuerySet["Blob"]):
    def unused(self) -> BlobQuerySet:
        """Those that no run uses and no other row names."""
        return self.filter(~Exists(BlobUse.objects.filter(blob=OuterRef("pk"))), blob_holders.nobody())

    def left(self, now: datetime) -> BlobQuerySet:
        """Unused ones that nobody has wanted for a day: a writer that has not committed yet is among who wanted one."""
        return self.unused().filter(touched_at__lte=now - GRACE)

    def let_go(self, names: Iterable[str], now: datetime) -> None:
        """A use of these was removed, in this transaction: whether it was the last is looked at in a day."""
        for sha256 in sorted(set(names)):
            self.filter(pk=sha256).update(sweep_at=now + GRACE)


class Blob(models.Model):
    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=100)
    storage_name = models.CharField(max_length=200, unique=True)
    touched_at = models.DateTimeField(help_text="When somebody last wanted it.")
    sweep_at = models.DateTimeField(
        null=True, blank=True, help_text="A use of it was removed: when to look whether it was the last."
    )

    objects = BlobQuerySet.as_manager()

    class Meta:
        indexes = [
            # the chore
            models.Index(fields=["sweep_at"], condition=Q(sweep_at__isnull=False), name="blob_to_sweep"),
        ]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} ({self.size} bytes)"


class BlobUse(models.Model):
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="uses")
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="blob_uses")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "blob"], name="blob_use_once_a_run")]

    def __str__(self) -> str:
        return f"{self.run_id} uses {self.blob_id[:12]}"
