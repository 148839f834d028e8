"""How the inbox finds one person's approvals quickly among a million: two ways to the same rows.

What is few is fetched by index, from the names and runs that make it theirs. What is many is met soon on the way when
the list is walked in its own order, and each row is asked whether it is theirs. Which of the two is better only the
number of rows can say, so they are counted first, and never beyond FEW. The rules themselves are those of `who`
and of `runs.sight`; a test compares the two ways, and both with `visible_to`, over many people and approvals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.cache import caches
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.lookups import IsNull

from approvals import counting, who
from approvals.models.reviewer import Reviewer
from runs import sight
from runs.models import Run

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from django.contrib.auth.models import User

    from approvals.models.inbox import ApprovalQuerySet

FEW = 5_000
NEAR = 3_000  # of the open list, where each row is asked
NEAR_END = "approvals:end-of-near"
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


def is_short(scope: str, user: User) -> bool:
    """Whether a scope that was just made is of few rows, so that all of them can be looked at."""
    if scope in ("all", "decided") and sight.sees_all(user):
        return False
    known: dict[str, bool] = user.__dict__.get("_few", {})
    ways = {"mine": "named", "teams": "named", "all": "live", "decided": "all"}
    return scope == "attention" or known.get(ways[scope], False)


def is_quick(scope: str, user: User) -> bool:
    """Whether a scope that was just made is walked without asking of each row whether it belongs there."""
    return is_short(scope, user) or (scope in ("all", "decided") and sight.sees_all(user))


def most_counted(scope: str, user: User) -> int:
    """To how many the rows of such a scope are counted."""
    return counting.MOST if is_quick(scope, user) else counting.LONG


def countable(scope: str, rows: ApprovalQuerySet, user: User) -> counting.Countable:
    """How such a scope of open rows is counted: where each row is asked, only so far down the list."""
    if is_quick(scope, user):
        return counting.Countable(rows, counting.MOST)
    near = _near()
    return counting.Countable(rows.filter(near), counting.LONG, is_part=bool(near))


def near(scope: str, rows: ApprovalQuerySet, user: User) -> ApprovalQuerySet:
    return countable(scope, rows, user).rows


def _near() -> Q:
    """Over open rows: those that come first in their order; all, where they are few. Remembered a while."""
    from approvals.models import Approval

    known = caches["process"].get(NEAR_END)
    if known is None:
        last = Approval.objects.open().in_order().values_list("due_at", "opened_at")[NEAR - 1 : NEAR]
        known = next(iter(last), ())
        caches["process"].set(NEAR_END, known, counting.REMEMBERED)
    if not known:
        return Q()
    due_at, opened_at = known
    return (
        Q(due_at__lte=due_at) if due_at is not None else Q(due_at__isnull=False) | Q(opened_at__lte=opened_at)
    )


def sees_few(user: User) -> bool:
    """Whether the open ones that this person may see are few."""
    if sight.sees_all(user):
        return False
    return _are_few(user, "live", *(way for way, _run in _ways_to_runs(user, live=True)))


def weigh(user: User) -> None:
    """For a page that will ask for several scopes: where the runs of a person are few, so are those they are named in,
    and one statement says both."""
    if user.is_active and not sight.sees_all(user) and sees_few(user):
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

    named = _named(user).filter(approval=OuterRef("pk"))
    decided = Decision.objects.filter(by=user, approval=OuterRef("pk"))
    of_run = Approval.objects.filter(run=OuterRef("run"))
    theirs = of_run.filter(Q(assignee=user) | there_is(named) | there_is(decided))
    # Most often this one names them, and the others are not asked then.
    return there_is(named) | there_is(theirs) | sight.own(user, run="run__")


def among(keys: Collection[UUID]) -> Collection[UUID] | RawSQL:
    """For `pk__in`: thousands of ids as one value, where the database takes that."""
    return RawSQL("SELECT unnest(%s::uuid[])", [list(keys)]) if connection.vendor == "postgresql" else keys


def there_is(rows: QuerySet) -> Q:
    """As EXISTS, asked of each row alone: a subquery for one value is never turned into a table of all that the person
    was ever asked."""
    return Q(IsNull(Subquery(rows.order_by().values("pk")[:1]), False))
