"""That a run is in the archive, or on its way there: who put it there, when and why."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from runs.models.rules import not_blank


class ArchivalQuerySet(models.QuerySet["Archival"]):
    def under_way(self) -> ArchivalQuerySet:
        return self.filter(archived_at=None)


class Archival(models.Model):
    """Written before any row is moved, and the only thing that lets triggers pass their move (ADR 35)."""

    run = models.OneToOneField("runs.Run", on_delete=models.PROTECT, related_name="archival")
    by = models.CharField(max_length=200)
    reason = models.TextField()
    at = models.DateTimeField(help_text="When it began: nothing brings the run back from then on.")
    head = models.CharField(max_length=64, help_text="Digest of the run's last checkpoint.")
    archived_at = models.DateTimeField(null=True, blank=True, help_text="When nothing was left to move.")
    go_on_at = models.DateTimeField(
        null=True, blank=True, help_text="Of the top of a family: when a worker goes on with it."
    )

    objects = ArchivalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(archived_at=None) | Q(go_on_at=None), name="archival_ends_once_archived"
            ),
            models.CheckConstraint(condition=not_blank("reason"), name="archival_says_why"),
        ]
        indexes = [
            # the chore
            models.Index(fields=["go_on_at"], condition=Q(go_on_at__isnull=False), name="archival_to_go_on"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {'archived' if self.archived_at else 'being archived'} by {self.by}"

    @property
    def since(self) -> datetime:
        return self.archived_at or self.at


class ArchiveRound(models.Model):
    """One row: where the walk over ended families stands that looks for those old enough, and when it goes on.

    In order of their end. What may not be archived yet is passed by, and met again in the next round.
    """

    look_at = models.DateTimeField()
    after_at = models.DateTimeField(null=True, blank=True, help_text="When the last one looked at ended.")
    after_run = models.UUIDField(null=True, blank=True, help_text="Which that was.")

    def __str__(self) -> str:
        return f"goes on at {self.look_at}"
