"""How the inbox finds one person's approvals quickly among a million: two ways to the same rows.

What is few is fetched by index, from the names and runs that make it theirs. What is many is met soon on the way when
the list is walked in its own order, and each row is asked whether it is theirs. Which of the two is better only the
number of rows can say, so they are counted first, and never beyond FEW. The rules themselves are those of `who`
and of `runs.sight`; a test compares the two ways, and both with `visible_to`, over many people and approvals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.cache import cache
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull

from approvals import who
from approvals.models.reviewer import Reviewer
from runs import sight
from runs.models import Run

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models.inbox import ApprovalQuerySet

FEW = 5_000
REMEMBERED = 300  # seconds


def named_to(rows: ApprovalQuerySet, user: User) -> ApprovalQuerySet:
    """Open `rows` of which one of this person's names is a reviewer: a short cut before finer rules."""
    named = _named(user).filter(live=True)
    return rows.filter(pk__in=named.values("approval")) if _are_few(user, "named", named) else rows


def seen_by(rows: ApprovalQuerySet, user: User, *, live: bool) -> ApprovalQuerySet:
    """`rows` of the runs that this person may see; `live` promises that all of them are open."""
    if not user.is_active:
        return rows.none()
    if sight.sees_all(user):
        return rows
    ways = _ways_to_runs(user, live=live)
    if not _are_few(user, "live" if live else "all", *(way for way, _run in ways)):
        return rows.filter(met(user))
    first, *others = (way.order_by().values_list(run) for way, run in ways)
    return rows.filter(run__in=first.union(*others, all=True))


def _are_few(user: User, name: str, *ways: QuerySet) -> bool:
    """Whether the rows of all `ways` are. Counted once a request, and where they are many less often: either answer
    finds the same rows in the end."""
    known: dict[str, bool] = user.__dict__.setdefault("_few", {})
    if name not in known:
        key = f"approvals:not-few:{name}:{user.pk}"
        known[name] = not cache.get(key) and _count_to_few(ways)
        if not known[name]:
            cache.add(key, True, REMEMBERED)
    return known[name]


def _count_to_few(ways: tuple[QuerySet, ...]) -> bool:
    left = FEW
    for way in ways:
        left -= way.order_by()[: left + 1].count()
        if left < 0:
            return False
    return True


def _named(user: User) -> QuerySet[Reviewer]:
    return Reviewer.objects.filter(who.called(user), excluded=False)


def _ways_to_runs(user: User, *, live: bool) -> list[tuple[QuerySet, str]]:
    """Rows that let this person see a run, each with the name of its run; the same run comes by several ways."""
    from approvals.models import Approval, Decision

    named, assigned = _named(user), Approval.objects.filter(assignee=user)
    own = Run.objects.filter(sight.own(user))
    if live:
        named, assigned, own = named.filter(live=True), assigned.filter(outcome=""), own.live()
    decided = Decision.objects.filter(by=user)
    return [(named, "approval__run"), (assigned, "run"), (decided, "approval__run"), (own, "pk")]


def met(user: User) -> Q:
    """Whether this person may see the run of one approval, asked of that row alone.

    A subquery for one value is never turned into a table of all that the person was ever asked, as EXISTS may be.
    """
    from approvals.models import Approval, Decision

    ways = (
        _named(user).filter(approval__run=OuterRef("run")),
        Approval.objects.filter(assignee=user, run=OuterRef("run")),
        Decision.objects.filter(by=user, approval__run=OuterRef("run")),
    )
    met = sight.own(user, run="run__")
    for way in ways:
        met |= Q(IsNull(Subquery(way.order_by().values("pk")[:1]), False))
    return met
