"""Evidence that comes too late to be an outcome: insert only, outside the chain."""

from __future__ import annotations

from django.db import models


class Remark(models.Model):
    run = models.ForeignKey(
        "runs.Run", on_delete=models.PROTECT, related_name="hot_remarks", related_query_name="remarks"
    )
    # Without a constraint: an entry is moved to the archive and never removed, and evidence may come after that.
    entry = models.ForeignKey(
        "runs.LedgerEntry",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
    )
    kind = models.CharField(max_length=20, help_text="late_result, other_request")
    worker = models.CharField(max_length=120, blank=True, default="")
    fence = models.BigIntegerField()
    body = models.TextField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.run_id} {self.kind}"
