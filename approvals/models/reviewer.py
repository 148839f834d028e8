"""Who is named in an approval, and whose vote counts now."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Reviewer(models.Model):
    """One name that the author wrote: of a user or of a group, looked up when it matters, not when it was written."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="reviewers", db_index=False
    )
    name = models.CharField(max_length=150)
    excluded = models.BooleanField(default=False, help_text="May not decide, whatever else names them.")

    class Meta:
        ordering = ("id",)
        constraints = [
            # also the index of: who may decide this one
            models.UniqueConstraint(fields=["approval", "name", "excluded"], name="reviewer_named_once"),
        ]
        indexes = [
            models.Index(fields=["name", "approval"], name="reviewer_by_name"),  # the inbox of one person
        ]

    def __str__(self) -> str:
        return f"not {self.name}" if self.excluded else self.name


class Vote(models.Model):
    """A decision that counts towards the quorum as things stand: rows come and go, the decisions stay."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="votes", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decision = models.OneToOneField("approvals.Decision", on_delete=models.PROTECT, related_name="vote")

    class Meta:
        ordering = ("id",)
        constraints = [
            # also the index of: the votes of one approval
            models.UniqueConstraint(fields=["approval", "by"], name="vote_once_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.by} on {self.approval_id}"
