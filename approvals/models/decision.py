"""What one person said to an approval: append-only, a link of the approval's chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # a payload is any JSON

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.words import DID, VERDICTS, VIAS
from runs.core import codec
from runs.errors import told
from runs.models.rules import not_blank

if TYPE_CHECKING:
    from collections.abc import Sequence


class Decision(models.Model):
    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="decisions", db_index=False
    )
    seq = models.PositiveIntegerField(help_text="Place in the approval's chain, which activities share.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions")
    via = models.CharField(max_length=10)
    verdict = models.CharField(max_length=10)
    payload = models.TextField(help_text="Canonical text of what was decided on, edits included.")
    payload_digest = models.CharField(max_length=64)
    reason = models.TextField(blank=True, default="")
    operation_id = models.CharField(max_length=200, unique=True)
    operation_digest = models.CharField(max_length=64, help_text="Of what was sent under the operation id.")
    revision = models.PositiveIntegerField(help_text="The approval's revision after it.")
    at = models.DateTimeField()
    signed_in = models.CharField(
        max_length=200, blank=True, default="", help_text="How the person signed in."
    )
    stage = models.PositiveSmallIntegerField(default=1, help_text="In which it counts.")
    needs = models.JSONField(
        null=True, blank=True, help_text="Of an edit: the numbers of the stages that its payload needs."
    )
    instead_of = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="decided_by_others",
        help_text="For whom it was said, if that person had given their part away.",
    )
    signature = models.TextField(
        blank=True, default="", help_text="Canonical JSON of who signed, what it means, and the time zone."
    )
    seen = models.TextField(blank=True, default="", help_text="Canonical JSON from which the page was made.")
    seen_digest = models.CharField(max_length=64, blank=True, default="")
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ("approval", "seq")
        constraints = [
            # also the index of: one approval's decisions in order
            models.UniqueConstraint(fields=["approval", "seq"], name="decision_seq_once"),
            models.CheckConstraint(condition=Q(verdict__in=VERDICTS), name="decision_verdict_known"),
            models.CheckConstraint(condition=Q(via__in=VIAS), name="decision_via_known"),
            models.CheckConstraint(condition=not_blank("operation_id"), name="decision_operation_not_blank"),
        ]
        indexes = [
            models.Index(fields=["by", "-at"], name="decision_by_person"),  # who did what; what I decided
        ]

    def __str__(self) -> str:
        return str(told(DID[self.verdict], who=self.by))

    @property
    def value(self) -> Any:
        """The payload, decoded."""
        return codec.loads(self.payload)

    def links(self) -> Sequence[str | int | list[int] | None]:
        """What the digest covers, in the order that the format fixes (approvals/chain.py).

        The last four only where one of them says something: in stages, for somebody else, or signed.
        """
        more = (self.stage, self.needs, self.instead_of_id, self.signature)
        said = () if more == (1, None, None, "") else more
        return (
            self.by_id,
            self.via,
            self.verdict,
            self.payload_digest,
            self.reason,
            self.operation_id,
            self.operation_digest,
            self.signed_in,
            self.seen_digest,
            *said,
        )
