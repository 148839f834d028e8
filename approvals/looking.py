"""How far a long list is looked through: a page is answered soon, whatever is asked of however many.

What fits often is met soon on the way when the list is walked in its own order. What fits seldom is fetched by an
index: a search's, a reviewer's, a requester's. What is neither, or has no index, is looked for a bounded way down the
list; the page then says so, and leads on from there (ADR 0032).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # rows of either table

from django.db import OperationalError, connection, transaction

from approvals import place
from approvals.counting import LONG, Count, cut
from approvals.models import Approval, reach

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

    from approvals.filters import Filter
    from approvals.models.inbox import ApprovalQuerySet
    from approvals.place import Place, Row

NEAR = 1_000  # rows of the list, and then a stretch more
FAR_OPEN = 2_000
FAR_DECIDED = 10_000  # they lie in their order, and are read sooner
FEW = 1_000  # what an index finds is few
FREQUENT = 2_500  # of what is expected to be more, the index of words is not asked
READ = 20_000  # of no more is each text read where there is no index of words, on SQLite
PATIENCE = 1_000  # milliseconds, in which it has to find them


@dataclass(frozen=True, slots=True)
class Look:
    """`rows` begin at the page's place; `whole` is all of the list, where that is known.

    `end`: from where to look on, where the page is not full though there may be more.
    """

    rows: list[Row]
    count: Count
    whole: list[Row] | None = None
    end: Place | None = None


def look(
    scope: ApprovalQuerySet,
    filter: Filter,
    now: datetime,
    after: Place | None,
    page: int,
    *,
    is_decided: bool,
) -> Look:
    """The rows of `scope` under `filter` below `after`, at least `page` of them where that many are near."""
    walked = Approval.objects.decided() if is_decided else Approval.objects.open().in_order()
    walked, rows = filter.by_index(walked, now), filter.applied(scope, now, walked=True)
    found: list[Row] = []
    begin, end, far = after, after, length_of_far(filter)
    for length in (NEAR, far):
        end = place.ahead(walked, begin, length, is_decided=is_decided)
        most = max(page, LONG + 1) if length == NEAR else page - len(found)  # the near ones are also counted
        found += place.read(rows, begin, end, most, is_decided=is_decided)
        if end is None and len(found) < most:
            whole = found if after is None else None
            return Look(found, Count(len(found), is_cut=whole is None), whole)
        if len(found) >= page:
            return Look(found, Count(min(len(found), most - 1), is_cut=True))
        is_rare = 2 * len(found) * far < page * NEAR  # the walk would not even fill half a page
        if length == NEAR and is_rare and (few := fitting(filter, is_decided)) is not None:
            return _all_of(rows.filter(pk__in=reach.among(few)), after, is_decided)
        begin = end
    return Look(found, Count(len(found), is_cut=True), end=end)


def length_of_look(filter: Filter) -> int:
    return NEAR + length_of_far(filter)


def length_of_far(filter: Filter) -> int:
    return FAR_DECIDED if filter.scope == "decided" and not filter.graph else FAR_OPEN


def _all_of(rows: ApprovalQuerySet, after: Place | None, is_decided: bool) -> Look:
    whole = place.read_all(rows, FEW, is_decided=is_decided)
    below = [row for row in whole if after is None or place.is_below(row, after, is_decided)]
    return Look(below, cut(len(whole)), whole)


def fitting(filter: Filter, is_decided: bool) -> list[UUID] | None:
    """Ids among which are all that fit the search, the reviewer or the requester, if these are few; None if not."""
    rows = Approval.objects.decided() if is_decided else Approval.objects.open()
    for keys, by_words in filter.ways(rows.order_by()):
        if by_words and connection.vendor != "postgresql" and rows.order_by()[: READ + 1].count() > READ:
            continue
        found = at_once(keys, by_words=by_words)
        if found is not None and len(found) <= FEW:
            return found
    return None


def at_once(keys: QuerySet[Any, UUID], *, by_words: bool) -> list[UUID] | None:
    """Up to FEW + 1 ids; None where the database has no quick way to them.

    The index of words is read as a bitmap; no other kind of scan may then take its place.
    """
    if connection.vendor != "postgresql":
        return list(keys[: FEW + 1])
    if by_words and expected(keys) > FREQUENT:
        return None
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(
                    "SET LOCAL enable_seqscan = off;"
                    f" SET LOCAL enable_indexscan = {'off' if by_words else 'on'};"
                    f" SET LOCAL statement_timeout = {PATIENCE:d}"
                )
            found = list(keys[: FEW + 1])
            transaction.set_rollback(True)  # both settings end here, also within another transaction
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != "57014":  # the statement's time was over
            raise
        return None
    return found


def expected(keys: QuerySet) -> int:
    """How many the database expects, from its statistics of the texts: to ask the index of words takes far longer."""
    return json.loads(keys.explain(format="json"))[0]["Plan"]["Plan Rows"]
