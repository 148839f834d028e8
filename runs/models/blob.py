"""Large values by reference: one row a content, one use a run."""

from __future__ import annotations

from django.db import models


class Blob(models.Model):
    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=100)
    storage_name = models.CharField(max_length=200, unique=True)
    touched_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.sha256[:12]} ({self.size} bytes)"


class BlobUse(models.Model):
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="uses")
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="blob_uses")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "blob"], name="blob_use_once_a_run")]

    def __str__(self) -> str:
        return f"{self.run_id} uses {self.blob_id[:12]}"
