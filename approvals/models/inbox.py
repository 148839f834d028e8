"""The questions that pages ask about approvals, each under one name: lists, headers and badges count the same rows."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import connection, models
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    Value,
    When,
)
from django.utils import timezone

from approvals import who
from approvals.models import attention, entitled, reach, search
from approvals.models.reviewer import Reviewer
from runs import sight
from runs.models import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.contrib.auth.models import User

OLD = timedelta(days=3)  # an approval without a deadline that has waited longer needs attention
OVERDUE, TODAY, LATER, NO_DEADLINE = "overdue", "today", "later", "none"
_ON_PAGE = (
    *("run", "run__created_by", "run__on_behalf_of", "entry", "assignee"),
    *("amendment", "amendment__by", "conclusion", "conclusion__by"),
)
SCOPES = ("mine", "teams", "all", "decided", "attention")


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def open(self) -> ApprovalQuerySet:
        return self.filter(outcome="")

    def decided(self) -> ApprovalQuerySet:
        """What is closed, by people or without them; the latest first."""
        return self.exclude(outcome="").order_by("-decided_at", "-pk")

    def visible_to(self, user: who.Person) -> ApprovalQuerySet:
        """Approvals follow their run. Asked of each row: for one approval, or for what little is left of them."""
        if not who.is_person(user) or not user.is_active:
            return self.none()
        return self if sight.sees_all(user) else self.filter(entitled.sees(user))

    def may_decide(self, user: who.Person) -> ApprovalQuerySet:
        """Those for which `who.why_not` has nothing to say against `user`, open or not."""
        if not who.is_person(user) or not user.is_active:
            return self.none()
        return self.filter(entitled.may_decide(user))

    def for_user(self, user: who.Person) -> ApprovalQuerySet:
        """What waits for this person: open, theirs to decide, and not voted on yet."""
        if not who.is_person(user) or not user.is_active:
            return self.none()
        return reach.named_to(self.open(), user).filter(entitled.may_decide_still(user))

    def mine(self, user: who.Person) -> ApprovalQuerySet:
        """What waits for this person and was not taken by somebody else: the badge counts these."""
        if not who.is_person(user):
            return self.none()
        return self.for_user(user).filter(_is_free_for(user))

    def teams(self, user: who.Person) -> ApprovalQuerySet:
        """Open ones that name a group of this person, whoever has taken or voted on them."""
        if not who.is_person(user) or not user.is_active:
            return self.none()
        _own_name, *groups = who.known_names(user)
        rows = reach.named_to(self.open(), user)
        return rows.filter(entitled.named(groups)) if groups else rows.none()

    def numbers(self, user: User, scopes: Collection[str]) -> dict[str, int]:
        """How many of these open rows, all that `user` may see, are in each of the scopes Mine, My teams and All."""
        _own_name, *groups = who.known_names(user)
        within = {
            "mine": Q(entitled.may_decide_still(user)) & _is_free_for(user),
            "teams": Q(entitled.named(groups)) if groups else Q(pk__in=()),
            "all": Q(),
        }
        counted = {name: Count("pk", filter=within[name] or None) for name in scopes}
        return self.order_by().aggregate(**counted) if counted else {}

    def needs_attention(self, now: datetime) -> ApprovalQuerySet:
        """Open ones that nobody, or not enough people, can decide; old ones without a deadline; a schema that is none.

        The rule, for few rows: people are counted for each where they may be too few (`attention` finds the same).
        """
        lacking = may_lack_people() & Q(able__lt=F("quorum"))
        return self.open().alias(able=entitled.able_count()).filter(is_old(now) | HAS_BROKEN_FORM | lacking)

    def may_need_attention(self, now: datetime) -> ApprovalQuerySet:
        """The same before people are counted: where there is none of these, none needs attention."""
        return self.open().filter(_is_doubtful(now))

    def in_need(self, user: User, now: datetime, found: attention.Found | None = None) -> ApprovalQuerySet:
        """What needs attention among what `user` may see; of many, that of `found`."""
        if found is None and reach.sees_few(user):
            return reach.seen_by(self.needs_attention(now), user, live=True)
        found = found or attention.found(self, now, user)
        return reach.seen_by(self.open().filter(pk__in=reach.among(found.keys)), user, live=True)

    def doubts(self, now: datetime, most: int) -> tuple[int, int]:
        """How many are open, counted to `most`, and how many of these may need attention. One statement."""
        doubtful = Case(When(_is_doubtful(now), then=Value(1)), output_field=IntegerField())
        found = self.open().annotate(doubtful=doubtful).values("doubtful")[:most]
        statement, given = found.query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*), COUNT(doubtful) FROM ({statement}) AS found", given)
            return cursor.fetchone()

    def in_scope(self, scope: str, user: who.Person, now: datetime) -> ApprovalQuerySet:
        """One of the inbox's scopes, in its order, over what `user` may see; an unknown scope raises KeyError."""
        if not who.is_person(user):
            return self.none()
        within: dict[str, Callable[[], ApprovalQuerySet]] = {
            "mine": lambda: self.mine(user).in_order(),
            "teams": lambda: self.teams(user).in_order(),
            "all": lambda: reach.seen_by(self.open(), user, live=True).in_order(),
            "decided": lambda: reach.seen_by(self.decided(), user, live=False),
            "attention": lambda: self.in_need(user, now).in_order(),
        }
        return within[scope]()

    def in_order(self) -> ApprovalQuerySet:
        """By deadline, then age. A count that ends early is quick in this order, in which open rows are indexed."""
        return self.order_by(F("due_at").asc(nulls_last=True), "opened_at", "pk")

    def by_due(self, now: datetime) -> ApprovalQuerySet:
        """In the inbox's order, each with its group in `due_group`: overdue, today, later, none."""
        group = Case(
            When(due_at=None, then=Value(NO_DEADLINE)),
            When(due_at__lte=now, then=Value(OVERDUE)),
            When(due_at__lt=midnight_after(now), then=Value(TODAY)),
            default=Value(LATER),
            output_field=CharField(),
        )
        return self.annotate(due_group=group).in_order()

    def for_page(self) -> ApprovalQuerySet:
        """With what the page of one approval shows."""
        return self.select_related(*_ON_PAGE).prefetch_related("reviewers__instead_of", "votes__decision")

    def called(self, text: str) -> ApprovalQuerySet:
        """Those whose id begins or ends with `text` (hex digits, hyphens ignored): people copy either end."""
        return search.called(self, text)

    def matching(self, text: str) -> ApprovalQuerySet:
        """Those that have `text` in question, reason or graph, or are called so."""
        return search.matching(self, text)

    def meeting(self, text: str) -> ApprovalQuerySet:
        """The same rows, looked for in the order of the list."""
        return search.met(self, text)

    def asked_by(self, text: str) -> ApprovalQuerySet:
        """Those whose run was started by, or works for, the person of that user name."""
        people = list(get_user_model().objects.filter(username__iexact=text).values_list("pk", flat=True))
        runs = Run.objects.filter(Q(created_by__in=people) | Q(on_behalf_of__in=people))
        return self.filter(run__in=runs.values("pk"))

    def for_reviewer(self, name: str) -> ApprovalQuerySet:
        """Those that name this user or group as a reviewer."""
        return self.filter(
            Exists(Reviewer.objects.filter(approval=OuterRef("pk"), excluded=False, name__iexact=name))
        )


HAS_BROKEN_FORM = Q(has_broken_form=True)


def _is_free_for(user: User) -> Q:
    return Q(assignee=None) | Q(assignee=user)


def is_old(now: datetime) -> Q:
    return Q(due_at=None, opened_at__lt=now - OLD)


def _is_doubtful(now: datetime) -> Q:
    return is_old(now) | HAS_BROKEN_FORM | may_lack_people()


def may_lack_people() -> Q:
    reviewers = Reviewer.objects.filter(approval=OuterRef("pk"), live=True)
    plain = Q(excluded=False, name__in=who.ample_names())
    few = Q(quorum__gt=who.AMPLE_QUORUM) | Q(stage__gt=1) | Exists(reviewers.exclude(plain))
    return few | ~Exists(reviewers)


def midnight_after(now: datetime) -> datetime:
    """The end of today, which is that of the current time zone."""
    tomorrow = timezone.localtime(now).date() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time.min))


def due_group(due_at: datetime | None, now: datetime, midnight: datetime) -> str:
    """What `by_due` says in the database."""
    if due_at is None:
        return NO_DEADLINE
    if due_at <= now:
        return OVERDUE
    return TODAY if due_at < midnight else LATER
