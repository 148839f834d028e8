"""Who is named in an approval, and whose vote counts now."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper


class Reviewer(models.Model):
    """One name that may decide: of a user or of a group, looked up when it matters, not when it was written.

    The author wrote it, or the question was escalated to it; or a reviewer gave their part in this one to it.
    """

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="reviewers", db_index=False
    )
    name = models.CharField(max_length=150)
    excluded = models.BooleanField(default=False, help_text="May not decide, whatever else names them.")
    stage = models.PositiveSmallIntegerField(
        default=1, help_text="In which stage it is asked; what is excluded is so in all."
    )
    group = models.CharField(
        max_length=150,
        blank=True,
        default="",
        help_text="Of which group this was a member when it was asked.",
    )
    instead_of = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Who gave their part to the one named here.",
    )
    live = models.BooleanField(default=True, help_text="The run has not ended: something may still be asked.")

    class Meta:
        ordering = ("id",)
        constraints = [
            # also the index of: who may decide this one
            models.UniqueConstraint(
                fields=["approval", "name", "excluded", "stage"], name="reviewer_named_once"
            ),
            # a part is given to one person at a time; also the index of: who gave theirs away
            models.UniqueConstraint(
                fields=["approval", "instead_of", "stage"],
                condition=models.Q(instead_of__isnull=False),
                name="reviewer_part_given_once",
            ),
        ]
        indexes = [
            # whom a run was ever shown to; all that is asked is in the index, and no row is read for it
            models.Index(fields=["name", "approval", "excluded"], name="reviewer_named"),
            # the filter by a reviewer, however their name is written
            models.Index(Upper("name"), "approval", "live", name="reviewer_any_case"),
            # the inbox of one person: short, however much was asked before
            models.Index(
                fields=["name", "approval", "excluded"], condition=Q(live=True), name="reviewer_named_live"
            ),
            # the same: who is excluded anywhere, which few are
            models.Index(fields=["name", "approval"], condition=Q(excluded=True), name="reviewer_excluded"),
        ]

    def __str__(self) -> str:
        return f"not {self.name}" if self.excluded else self.name

    @property
    def shown(self) -> str:
        """As people read it: a group whose members were fixed is one name."""
        return self.group or self.name


class Vote(models.Model):
    """A decision that counts towards the quorum as things stand: rows come and go, the decisions stay."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="votes", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decision = models.OneToOneField("approvals.Decision", on_delete=models.PROTECT, related_name="vote")
    stage = models.PositiveSmallIntegerField(default=1, help_text="In which it counts.")

    class Meta:
        ordering = ("id",)
        constraints = [
            # also the index of: the votes of one approval
            models.UniqueConstraint(fields=["approval", "by"], name="vote_once_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.by} on {self.approval_id}"
