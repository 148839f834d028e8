"""How the inbox finds one person's approvals quickly among a million: two ways to the same rows.

What is few is fetched by index, from the names and runs that make it theirs. What is many is met soon on the way when
the list is walked in its own order, and each row is asked whether it is theirs. Which of the two is better only the
number of rows can say, so they are counted first, and never beyond FEW. A test compares the two ways, and both with
`visible_to`, over many people and approvals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.cache import caches
from django.db import connection
from django.db.models import Q
from django.db.models.expressions import RawSQL

from approvals import counting, who
from approvals.models import entitled
from approvals.models.condition import Condition, one_of
from runs import sight
from runs.models.statuses import LIVE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from django.contrib.auth.models import User

    from approvals.models.inbox import ApprovalQuerySet

FEW = 5_000
NEAR = 1_000  # of the open list, where each row is asked
NEAR_END = "approvals:end-of-near"
NEWEST = 100
REMEMBERED = 300  # seconds


def named_to(rows: ApprovalQuerySet, user: User) -> ApprovalQuerySet:
    """Open `rows` of which one of this person's names is a reviewer: a short cut before finer rules."""
    named = _named(user, live=True)
    if not _are_few(user, "named", [named]):
        return rows
    return rows.filter(
        Condition(f"{{row}}.id IN (SELECT named.approval_id FROM {named.rows})", *named.values)
    )


def seen_by(rows: ApprovalQuerySet, user: User, *, live: bool) -> ApprovalQuerySet:
    """`rows` of the runs that this person may see; `live` promises that all of them are open."""
    if not user.is_active:
        return rows.none()
    if sight.sees_all(user):
        return rows
    ways = _ways_to_runs(user, live=live)
    if not _are_few(user, "live" if live else "all", ways):
        return rows.filter(entitled.sees(user))
    return rows.filter(_of_runs(ways))


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
    """Some `rows` of such a scope, for who needs a few hundred at most: those that come first, or the newest."""
    from approvals.models import Approval

    if scope != "decided":
        return countable(scope, rows, user).rows
    if not is_short(scope, user):
        return rows
    return Approval.objects.decided().filter(_of_runs(_ways_to_runs(user, live=False), NEWEST))


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
    return _are_few(user, "live", _ways_to_runs(user, live=True))


def weigh(user: User) -> None:
    """For a page that will ask for several scopes: where the runs of a person are few, so are those they are named in,
    and one statement says both."""
    if user.is_active and not sight.sees_all(user) and sees_few(user):
        user._few["named"] = True


@dataclass(frozen=True, slots=True)
class Way:
    """Rows that let a person see a run; the same run comes by several ways."""

    run: str
    rows: str  # behind FROM
    values: Sequence[object]
    joined: str = ""  # where the run is read from, if `rows` do not have it
    age: str = "asked.id"  # ids of these rise as time passes

    def runs(self, newest: int | None) -> str:
        if not newest:
            table, where = self.rows.split(" WHERE ", 1)
            return f"SELECT {self.run} FROM {table}{self.joined} WHERE {where}"
        # As text, in which no index has them: or it would be walked past all that is of others.
        limit = f"ORDER BY CAST({self.age} AS text) DESC LIMIT {newest:d}"
        name = self.age.partition(".")[0]
        return f"SELECT {self.run} FROM (SELECT {name}.* FROM {self.rows} {limit}) AS {name}{self.joined}"


def _of_runs(ways: Sequence[Way], newest: int | None = None) -> Condition:
    runs = " UNION ALL ".join(way.runs(newest) for way in ways)
    return Condition(f"{{row}}.run_id IN ({runs})", *(value for way in ways for value in way.values))


def _are_few(user: User, name: str, ways: Sequence[Way]) -> bool:
    """Whether the rows of all `ways` are. Counted once a request, and where they are many less often: either answer
    finds the same rows in the end."""
    known: dict[str, bool] = user.__dict__.setdefault("_few", {})
    if name not in known:
        key = f"approvals:not-few:{name}:{user.pk}"
        known[name] = not caches["process"].get(key) and _count_to_few(ways) <= FEW
        if not known[name]:
            caches["process"].add(key, True, REMEMBERED)
    return known[name]


def _count_to_few(ways: Sequence[Way]) -> int:
    found = " UNION ALL ".join(f"SELECT 1 FROM {way.rows}" for way in ways)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*) FROM ({found} LIMIT {FEW + 1:d}) AS found",
            [value for way in ways for value in way.values],
        )
        return cursor.fetchone()[0]


def _named(user: User, *, live: bool) -> Way:
    (among, names), still = one_of(who.known_names(user)), " AND named.live" if live else ""
    rows = f"approvals_reviewer named WHERE named.name {among} AND NOT named.excluded{still}"
    joined = " JOIN approvals_approval asked ON asked.id = named.approval_id"
    return Way("asked.run_id", rows, names, joined, "named.approval_id")


def _ways_to_runs(user: User, *, live: bool) -> list[Way]:
    own, watched = sight.own_in_sql(user, "own")
    still_open = " AND asked.outcome = ''" if live else ""
    among, statuses = one_of(LIVE)
    still_live, statuses = (f" AND own.status {among}", statuses) if live else ("", [])
    return [
        _named(user, live=live),
        Way("asked.run_id", f"approvals_approval asked WHERE asked.assignee_id = %s{still_open}", [user.pk]),
        Way("asked.run_id", "approvals_decision made WHERE made.by_id = %s", [user.pk],
            " JOIN approvals_approval asked ON asked.id = made.approval_id", "made.approval_id"),
        Way("own.id", f"runs_run own WHERE {own}{still_live}", [*watched, *statuses], age="own.id"),
    ]  # fmt: skip


def among(keys: Collection[UUID]) -> Collection[UUID] | RawSQL:
    """For `pk__in`: thousands of ids as one value, where the database takes that; as text, which is soon written."""
    if connection.vendor != "postgresql":
        return keys
    return RawSQL("SELECT unnest(%s::uuid[])", [f"{{{','.join(map(str, keys))}}}"])


def among_names(names: Collection[str]) -> Collection[str] | RawSQL:
    """The same for `name__in`. Two hundred places make a statement that the driver reads anew each time."""
    return RawSQL("SELECT unnest(%s::text[])", [list(names)]) if connection.vendor == "postgresql" else names
