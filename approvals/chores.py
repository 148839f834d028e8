"""What is to be done about approvals as time passes, for whoever does due work (runs/chores.py)."""

from __future__ import annotations

import uuid

from approvals.models import Absence, Approval
from approvals.models.inbox import ApprovalQuerySet
from runs import chores


def register() -> None:
    chores.also(chores.Chore("reminders", _open, "remind_at", _remind))
    chores.also(chores.Chore("escalations", _open, "escalate_at", _escalate))
    chores.also(chores.Chore("absences", lambda: Absence.objects.all(), "look_at", _tend))


def _open() -> ApprovalQuerySet:
    return Approval.objects.open()


def _remind(pk: uuid.UUID) -> None:
    Approval.objects.get(pk=pk).remind()


def _escalate(pk: uuid.UUID) -> None:
    Approval.objects.get(pk=pk).escalate()


def _tend(pk: int) -> None:
    Absence.objects.select_related("person", "deputy").get(pk=pk).tend()
