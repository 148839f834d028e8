"""How the inbox finds one person's approvals quickly among a million: two ways to the same rows.

What is few is fetched by index, from the names and runs that make it theirs. What is many is met soon on the way when
the list is walked in its own order, and each row is asked whether it is theirs. Which of the two is better only the
number of rows can say, so they are counted first, and never beyond FEW. The rules themselves are those of `who`
and of `runs.sight`; a test compares the two ways, and both with `visible_to`, over many people and approvals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.cache import caches
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
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


def weigh(user: User) -> None:
    """For a page that will ask for several scopes: where the runs of a person are few, so are those they are named in,
    and one statement says both."""
    if user.is_active and not sight.sees_all(user):
        ways = _ways_to_runs(user, live=True)
        if _are_few(user, "live", *(way for way, _run in ways)):
            user._few["named"] = True


def _are_few(user: User, name: str, *ways: QuerySet) -> bool:
    """Whether the rows of all `ways` are. Counted once a request, and where they are many less often: either answer
    finds the same rows in the end."""
    known: dict[str, bool] = user.__dict__.setdefault("_few", {})
    if name not in known:
        key = f"approvals:not-few:{name}:{user.pk}"
        known[name] = not caches["process"].get(key) and _count_to_few(ways)
        if not known[name]:
            caches["process"].add(key, True, REMEMBERED)
    return known[name]


def _count_to_few(ways: tuple[QuerySet, ...]) -> bool:
    first, *others = (way.order_by() for way in ways)
    if others:
        first, *others = (way.values_list(Value(1)) for way in (first, *others))
        first = first.union(*others, all=True)
    return first[: FEW + 1].count() <= FEW


def _named(user: User) -> QuerySet[Reviewer]:
    return Reviewer.objects.filter(who.called(user), excluded=False)


def _ways_to_runs(user: User, *, live: bool) -> list[tuple[QuerySet, str]]:
    """Rows that let this person see a run, each with the name of its run; the same run comes by several ways.

    To put the question costs more than to ask it, so it is put once a request.
    """
    known: dict[bool, list[tuple[QuerySet, str]]] = user.__dict__.setdefault("_ways_to_runs", {})
    if live not in known:
        known[live] = _all_ways_to_runs(user, live)
    return known[live]


def _all_ways_to_runs(user: User, live: bool) -> list[tuple[QuerySet, str]]:
    from approvals.models import Approval, Decision

    named, assigned = _named(user), Approval.objects.filter(assignee=user)
    own = Run.objects.filter(sight.own(user))
    if live:
        named, assigned, own = named.filter(live=True), assigned.filter(outcome=""), own.live()
    decided = Decision.objects.filter(by=user)
    return [(named, "approval__run"), (assigned, "run"), (decided, "approval__run"), (own, "pk")]


def met(user: User) -> Q:
    """Whether this person may see the run of one approval, asked of that row alone."""
    from approvals.models import Approval, Decision

    ways = (
        _named(user).filter(approval__run=OuterRef("run")),
        Approval.objects.filter(assignee=user, run=OuterRef("run")),
        Decision.objects.filter(by=user, approval__run=OuterRef("run")),
    )
    met = sight.own(user, run="run__")
    for way in ways:
        met |= there_is(way)
    return met


def there_is(rows: QuerySet) -> Q:
    """As EXISTS, asked of each row alone: a subquery for one value is never turned into a table of all that the person
    was ever asked."""
    return Q(IsNull(Subquery(rows.order_by().values("pk")[:1]), False))
