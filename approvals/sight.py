"""Whom approvals let see a run, beside those whom the engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from approvals import who
from approvals.models import Approval, Decision, Reviewer

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def asked_or_heard(user: User) -> Q:
    """Over Run: an approval of it names them as a reviewer, is theirs, or was decided by them.

    Told of each run alone, so that one run is found at once though a million were asked about; a database that reads
    many turns it into a join by itself.
    """
    of_run = {"approval__run": OuterRef("pk")}
    named = Reviewer.objects.filter(who.called(user), excluded=False, **of_run)
    assigned = Approval.objects.filter(assignee=user, run=OuterRef("pk"))
    decided = Decision.objects.filter(by=user, **of_run)
    return Q(Exists(named)) | Q(Exists(assigned)) | Q(Exists(decided))
