"""What is to be done about approvals as time passes, for whoever does due work (runs/chores.py)."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db.models import QuerySet

from approvals.models import Absence, Approval, KeptDraft, Notice, Occasion
from approvals.models.inbox import ApprovalQuerySet
from approvals.notices import addressing, sending
from approvals.notices.words import WAITING
from runs import chores

SENDS_WITHIN = timedelta(minutes=3)  # longer than a mail server may take for each of its answers


def register() -> None:
    chores.also(chores.Chore("reminders", _open, "remind_at", _remind))
    chores.also(chores.Chore("escalations", _open, "escalate_at", _escalate))
    chores.also(chores.Chore("occasions", lambda: Occasion.objects.all(), "look_at", addressing.address))
    chores.also(chores.Chore("notices", _waiting, "send_at", sending.send, lease=SENDS_WITHIN))
    chores.also(chores.Chore("drafts", lambda: KeptDraft.objects.all(), "forget_at", _forget))
    chores.also(chores.Chore("absences", lambda: Absence.objects.all(), "look_at", _tend))


def _open() -> ApprovalQuerySet:
    return Approval.objects.open()


def _waiting() -> QuerySet[Notice]:
    return Notice.objects.filter(status=WAITING)


def _remind(pk: uuid.UUID) -> None:
    Approval.objects.get(pk=pk).remind()


def _escalate(pk: uuid.UUID) -> None:
    Approval.objects.get(pk=pk).escalate()


def _forget(pk: int) -> None:
    """Of a decided one; what was reopened meanwhile keeps it."""
    KeptDraft.objects.filter(pk=pk, forget_at__isnull=False).delete()


def _tend(pk: int) -> None:
    Absence.objects.select_related("person", "deputy").get(pk=pk).tend()
