"""What is left of a run that was erased: who did it, when, why, and digests that hold what remains."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from runs.models.rules import not_blank

ERASED = "(erased)"  # stands where a text was that a digest covers


class TombstoneQuerySet(models.QuerySet["Tombstone"]):
    def under_way(self) -> TombstoneQuerySet:
        return self.filter(erased_at=None)


class Tombstone(models.Model):
    """Written before anything is removed, and the only thing that lets triggers pass its removal (ADR 21)."""

    run = models.OneToOneField("runs.Run", on_delete=models.PROTECT, related_name="tombstone")
    by = models.CharField(max_length=200)
    reason = models.TextField()
    at = models.DateTimeField(help_text="When the erasure began: nothing brings the run back from then on.")
    head = models.CharField(max_length=64, help_text="Digest of the run's last checkpoint.")
    rest = models.CharField(
        max_length=64, blank=True, default="", help_text="Digest of all rows of the run as they remain."
    )
    erased_at = models.DateTimeField(null=True, blank=True, help_text="When nothing was left to remove.")
    go_on_at = models.DateTimeField(
        null=True, blank=True, help_text="Of the top of a family: when a worker goes on with it."
    )

    objects = TombstoneQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(erased_at=None, rest="")
                | Q(erased_at__isnull=False, go_on_at=None) & ~Q(rest=""),
                name="tombstone_sealed_when_erased",
            ),
            models.CheckConstraint(condition=not_blank("reason"), name="tombstone_says_why"),
        ]
        indexes = [
            # the chore
            models.Index(fields=["go_on_at"], condition=Q(go_on_at__isnull=False), name="tombstone_to_go_on"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {'erased' if self.erased_at else 'being erased'} by {self.by}"

    @property
    def since(self) -> datetime:
        return self.erased_at or self.at
