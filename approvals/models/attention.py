"""What needs attention among very many open approvals: found from indexes of what may need it, not by asking each.

The rule is `needs_attention`; it counts people for each open approval that may lack them, which of a hundred thousand
takes seconds. Here these are gathered first, and people are counted for no more than MOST of them, or for those that
one person may see and that are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Q

from approvals import who
from approvals.models import reach
from approvals.models.reviewer import Reviewer, Vote
from runs import sight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.contrib.auth.models import User

    from approvals.models.inbox import ApprovalQuerySet

MOST = 250  # of each kind; people are counted for so many
OLDEST = 1_000  # of old ones that most people may not see, so many are looked at
ASKED = 12  # of no more that may need it, the rule itself is asked
Named = tuple[
    str, bool, int, "int | None", "bool | None"
]  # name, excluded, stage, instead of whom, who is active
# As the index approval_doubtful has it
DOUBTFUL = Q(has_broken_form=True) | Q(is_unnamed=True) | Q(stage__gt=1) | Q(quorum__gt=who.AMPLE_QUORUM)


@dataclass(frozen=True, slots=True)
class Found:
    """`is_cut`: more may need attention than were looked at."""

    keys: frozenset[UUID]
    is_cut: bool


def found(rows: ApprovalQuerySet, now: datetime, user: User | None = None) -> Found:
    """Among `rows`, all approvals: up to MOST of those that are old or broken, and those that lack people.

    Of old ones, those that `user` may see among the first OLDEST; without one, of all.
    """
    from approvals.models.inbox import is_old

    is_open = rows.open()
    seen, is_part = is_open.filter(is_old(now)), False
    if user is not None and not sight.sees_all(user):  # each row is asked whether they see it
        last = seen.in_order().values_list("opened_at", flat=True)[OLDEST - 1 : OLDEST].first()
        is_part = last is not None
        seen = reach.seen_by(seen.filter(opened_at__lte=last) if is_part else seen, user, live=True)
    old = seen.in_order().values_list("pk", flat=True)
    doubtful = is_open.filter(DOUBTFUL).in_order().values_list("pk", "has_broken_form")
    certain = set(old[: MOST + 1])
    doubted: dict[UUID, None] = {}
    for key, is_broken in doubtful[: MOST + 1]:
        if is_broken:
            certain.add(key)
        else:
            doubted[key] = None
    live = Reviewer.objects.filter(live=True).order_by()
    ample = reach.among_names(list(who.ample_names()))
    for named in (live.filter(excluded=True), live.exclude(name__in=ample)):
        doubted |= dict.fromkeys(named.values_list("approval", flat=True)[: MOST + 1])
    unsure = [key for key in doubted if key not in certain]
    looked_at = unsure[:MOST]
    short = short_of_people(is_open.filter(pk__in=reach.among(looked_at))) if looked_at else ()
    return Found(frozenset(certain.union(short)), is_part or max(len(unsure), len(certain)) > MOST)


def found_among_few(rows: ApprovalQuerySet, now: datetime) -> Found:
    """Among open `rows`, all that a person may see: each that may need attention is looked at, in six statements."""
    from approvals.models.approval import Approval
    from approvals.models.inbox import HAS_BROKEN_FORM, is_old

    doubtful = rows.may_need_attention(now).order_by().annotate(is_certain=is_old(now) | HAS_BROKEN_FORM)
    told = dict(doubtful.values_list("pk", "is_certain"))
    certain = {key for key, is_certain in told.items() if is_certain}
    unsure = told.keys() - certain
    short = short_of_people(Approval.objects.filter(pk__in=reach.among(unsure))) if unsure else ()
    return Found(frozenset(certain.union(short)), is_cut=False)


def short_of_people(rows: ApprovalQuerySet) -> list[UUID]:
    """Ids of those for which fewer people than needed may decide now: `who.able` of many, in five statements."""
    asked = rows.order_by().values_list("pk", "stage", "quorum", "run__created_by", "run__on_behalf_of")
    approvals = list(asked)
    keys = reach.among([row[0] for row in approvals])
    named: dict[UUID, list[Named]] = {}
    of_these = Reviewer.objects.filter(approval__in=keys).order_by()
    for key, *row in of_these.values_list(
        "approval", "name", "excluded", "stage", "instead_of", "instead_of__is_active"
    ):
        named.setdefault(key, []).append((*row,))
    voted: dict[UUID, list[tuple[int, int]]] = {}
    for key, by, stage in (
        Vote.objects.filter(approval__in=keys).order_by().values_list("approval", "by", "stage")
    ):
        voted.setdefault(key, []).append((by, stage))
    called = _called({row[0] for rows in named.values() for row in rows})

    @cache  # most name the same few
    def able(rows: frozenset[Named], stage: int) -> set[int]:
        return _able(rows, stage, called)

    return [
        key
        for key, stage, quorum, *requesters in approvals
        if len(
            able(frozenset(named.get(key, ())), stage) - _earlier(voted.get(key, ()), stage) - {*requesters}
        )
        < quorum
    ]


def _able(rows: Iterable[Named], now_stage: int, called: Mapping[str, tuple[set[int], set[int]]]) -> set[int]:
    """Who is asked now, but for votes in other stages and whom the run works for."""
    able: set[int] = set()
    barred: set[int] = set()
    for name, excluded, stage, instead_of, is_active in rows:
        own, members = called.get(name, (set(), set()))
        if excluded:
            barred |= own | members
        elif stage == now_stage and instead_of is None:
            able |= own | members
        elif stage == now_stage:
            barred.add(instead_of)
            able |= own if is_active else set()
    return able - barred


def _earlier(votes: Iterable[tuple[int, int]], now_stage: int) -> set[int]:
    return {by for by, stage in votes if stage != now_stage}


def _called(names: set[str]) -> dict[str, tuple[set[int], set[int]]]:
    """By name: the active user who is called so, and the active members of the group that is."""
    people = get_user_model().objects.filter(is_active=True)
    called: dict[str, tuple[set[int], set[int]]] = {}
    among = reach.among_names(names)
    for name, pk in people.filter(username__in=among).values_list("username", "pk"):
        called.setdefault(name, (set(), set()))[0].add(pk)
    for name, pk in people.filter(groups__name__in=among).values_list("groups__name", "pk"):
        called.setdefault(name, (set(), set()))[1].add(pk)
    return called
