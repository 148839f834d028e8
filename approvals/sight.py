"""Whom approvals let see a run, beside those whom the engine does."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q

from approvals import who
from approvals.models import Approval, Decision, Reviewer
from runs.audience import Audience

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


def audience(run_ids: Collection[uuid.UUID]) -> Audience:
    """The same, from the runs to the people."""
    of_runs = {"approval__run__in": run_ids}
    named = Reviewer.objects.filter(excluded=False, **of_runs).order_by().values_list("name", flat=True)
    assigned = Approval.objects.filter(run__in=run_ids, assignee__isnull=False).order_by()
    decided = Decision.objects.filter(by__isnull=False, **of_runs).order_by()
    people = {*assigned.values_list("assignee", flat=True), *decided.values_list("by", flat=True)}
    return Audience(frozenset(people), names=frozenset(named.distinct()))
