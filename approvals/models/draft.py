"""What a reviewer has typed and not sent: kept for this person alone, on whatever device they come back."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from approvals.text import checked_text, storable_text
from runs import secrets
from runs.engine import clock
from runs.errors import Invalid
from runs.models import Tombstone

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models.approval import Approval

KEPT = timedelta(days=7)  # after the decision, which can long not be undone any more
LONGEST_JSON = (
    2_500_000  # characters: as much as a form can send, so that what was decided can be typed again
)
DIGEST = 64  # characters
TEXTS = ("reason", "words", "comment")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")  # of a text in JSON


class KeptDraft(models.Model):
    """One a person and approval; it goes when nothing is left in it, or when that person has decided."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="kept_drafts", db_index=False
    )
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    json = models.TextField(blank=True, default="", help_text="The edited payload as it was typed.")
    table = models.CharField(
        max_length=DIGEST, blank=True, default="", help_text="Digest of the payload that was edited."
    )
    reason = models.TextField(blank=True, default="", help_text="Of a rejection.")
    words = models.TextField(blank=True, default="", help_text="Of an answer in words.")
    comment = models.TextField(blank=True, default="")
    at = models.DateTimeField()
    forget_at = models.DateTimeField(
        null=True, blank=True, help_text="When a chore takes it away; none while the question is open."
    )

    class Meta:
        constraints = [
            # also the index of: what this person has typed here
            models.UniqueConstraint(fields=["approval", "person"], name="draft_once_a_person"),
        ]
        indexes = [
            models.Index(fields=["forget_at"], condition=Q(forget_at__isnull=False), name="draft_forget")
        ]  # the chore

    def __str__(self) -> str:
        return f"{self.person_id} on {self.approval_id}"

    @classmethod
    def of(cls, approval: Approval, person: User) -> Self | None:
        return cls.objects.filter(approval=approval, person=person).first()

    @classmethod
    @transaction.atomic
    def keep(cls, approval: Approval, person: User, **typed: str) -> Self | None:
        """Keep what was typed: `json` with its `table`, `reason`, `words` or `comment`; "" takes it away.

        The rest stays as it was. Raises Invalid for what no decision could carry either: too long, or a known secret.
        """
        if len(typed.get("json", "")) > LONGEST_JSON:
            raise Invalid(_("This is too long to be kept."), {"json": [_("Too long.")]})
        for name, text in typed.items():
            if name in TEXTS:
                checked_text(text, name)
            secrets.refuse(text, name)
        secrets.refuse(_ESCAPE.sub(_meant, typed.get("json", "")), "json")
        typed = {name: storable_text(text) for name, text in typed.items()}
        if "table" in typed:
            typed["table"] = typed["table"][:DIGEST]
        # Who erases or decides it waits, or is waited for: of one that is emptied no draft is kept, of a closed one
        # none for ever.
        locked = type(approval).objects.select_for_update().only("outcome").get(pk=approval.pk)
        if Tombstone.objects.filter(run=approval.run_id).exists():
            return None
        if "json" in typed and not typed["json"]:
            typed["table"] = ""
        if not any(typed.values()) and not cls.objects.filter(approval=approval, person=person).exists():
            return None
        kept, _created = cls.objects.update_or_create(
            approval=approval, person=person, defaults={**typed, **cls._moments(locked)}
        )
        if any((kept.json, kept.reason, kept.words, kept.comment)):
            return kept
        kept.delete()
        return None

    @staticmethod
    def _moments(approval: Approval) -> dict[str, datetime | None]:
        now = clock.now()
        return {"at": now, "forget_at": None if approval.is_open else now + KEPT}

    @classmethod
    def rest(cls, approval: Approval, decided_at: datetime | None) -> None:
        """Once it is decided what people typed is kept for a while, to be copied; for good while it is open."""
        forget_at = decided_at + KEPT if decided_at is not None else None
        cls.objects.filter(approval=approval).update(forget_at=forget_at)

    @classmethod
    def forget(cls, approval: Approval, person: User) -> None:
        cls.objects.filter(approval=approval, person=person).delete()


def _meant(escape: re.Match[str]) -> str:
    """The character that an escape of JSON stands for."""
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "t": "\t", "r": "\r"}.get(code, code)
