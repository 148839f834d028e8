"""Evidence that comes too late to be an outcome: insert only, outside the chain."""

from __future__ import annotations

from django.db import models


class Remark(models.Model):
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="remarks")
    entry = models.ForeignKey(
        "runs.LedgerEntry", null=True, blank=True, on_delete=models.PROTECT, related_name="remarks"
    )
    kind = models.CharField(max_length=20, help_text="late_result, other_request")
    worker = models.CharField(max_length=120, blank=True, default="")
    fence = models.BigIntegerField()
    body = models.TextField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.kind}"
