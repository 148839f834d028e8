"""Whom approvals let see a run, beside those whom the engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from approvals import who
from approvals.models import Approval, Decision, Reviewer

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def asked_or_heard(user: User) -> Q:
    """Over Run: an approval of it names them as a reviewer, is theirs, or was decided by them."""
    named = Reviewer.objects.filter(who.called(user), excluded=False).values("approval__run")
    assigned = Approval.objects.filter(assignee=user).values("run")
    decided = Decision.objects.filter(by=user).values("approval__run")
    return Q(pk__in=named) | Q(pk__in=assigned) | Q(pk__in=decided)
