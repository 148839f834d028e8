"""What happened to an approval besides decisions: append-only, a link of the same chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.words import ACTIVITIES

if TYPE_CHECKING:
    from collections.abc import Sequence


class Activity(models.Model):
    """A comment, claim, assignment, reminder, undo, refused attempt or expiry. `by` is null when the engine did it."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="activities", db_index=False
    )
    seq = models.PositiveIntegerField(help_text="Place in the approval's chain, which decisions share.")
    kind = models.CharField(max_length=12)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="activities"
    )
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Whom it was assigned or given to.",
    )
    decision = models.ForeignKey(
        "approvals.Decision",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="withdrawals",
        help_text="The decision that was undone or taken back.",
    )
    text = models.TextField(blank=True, default="", help_text="The comment, or what was said about it.")
    revision = models.PositiveIntegerField(help_text="The approval's revision after it.")
    at = models.DateTimeField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ("approval", "seq")
        verbose_name_plural = "activities"
        constraints = [
            # also the index of: one approval's activity in order
            models.UniqueConstraint(fields=["approval", "seq"], name="activity_seq_once"),
            models.CheckConstraint(condition=Q(kind__in=ACTIVITIES), name="activity_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by}" if self.by else self.kind

    def links(self) -> Sequence[str | int | None]:
        """What the digest covers, in the order that the format fixes (approvals/chain.py)."""
        return (self.by_id, self.kind, self.to_id, self.decision_id, self.text)
