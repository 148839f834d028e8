"""The questions that pages ask about approvals, each under one name: lists, headers and badges count the same rows."""

from __future__ import annotations

import uuid
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Case, CharField, Count, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Cast, Replace
from django.utils import timezone

from approvals import who
from approvals.models.reviewer import Reviewer, Vote
from runs.models import Run

if TYPE_CHECKING:
    from collections.abc import Callable


OLD = timedelta(days=3)  # an approval without a deadline that has waited longer needs attention
SHORTEST_ID = 4
OVERDUE, TODAY, LATER, NO_DEADLINE = "overdue", "today", "later", "none"
SCOPES = ("mine", "teams", "all", "decided", "attention")


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def open(self) -> ApprovalQuerySet:
        return self.filter(outcome="")

    def decided(self) -> ApprovalQuerySet:
        """What is closed, by people or without them; the latest first."""
        return self.exclude(outcome="").order_by("-decided_at", "-pk")

    def visible_to(self, user: who.Person) -> ApprovalQuerySet:
        """Approvals follow their run."""
        return self.filter(run__in=Run.objects.visible_to(user))

    def may_decide(self, user: who.Person) -> ApprovalQuerySet:
        """Those for which `who.why_not` has nothing to say against `user`, open or not."""
        if not who.is_person(user) or not user.is_active:
            return self.none()
        called = Reviewer.objects.filter(who.called(user), approval=OuterRef("pk"))
        return self.filter(
            Exists(called.filter(excluded=False)), ~Exists(called.filter(excluded=True))
        ).exclude(Q(run__created_by=user) | Q(run__on_behalf_of=user))

    def for_user(self, user: who.Person) -> ApprovalQuerySet:
        """What waits for this person: open, theirs to decide, and not voted on yet."""
        if not who.is_person(user):
            return self.none()
        voted = Vote.objects.filter(approval=OuterRef("pk"), by=user)
        return self.open().may_decide(user).exclude(Exists(voted))

    def mine(self, user: who.Person) -> ApprovalQuerySet:
        """What waits for this person and was not taken by somebody else: the badge counts these."""
        if not who.is_person(user):
            return self.none()
        return self.for_user(user).filter(Q(assignee=None) | Q(assignee=user))

    def teams(self, user: who.Person) -> ApprovalQuerySet:
        """Open ones that name a group of this person, whoever has taken or voted on them."""
        if not who.is_person(user):
            return self.none()
        groups = user.groups.values("name")
        named = Reviewer.objects.filter(approval=OuterRef("pk"), excluded=False, name__in=groups)
        return self.open().filter(Exists(named))

    def needs_attention(self, now: datetime) -> ApprovalQuerySet:
        """Open ones that nobody, or not enough people, can decide; and old ones without a deadline."""
        return (
            self.open()
            .annotate(able=who.able_count())
            .filter(Q(able__lt=F("quorum")) | Q(due_at=None, opened_at__lt=now - OLD))
        )

    def in_scope(self, scope: str, user: who.Person, now: datetime) -> ApprovalQuerySet:
        """One of the inbox's scopes, over what `user` may see; an unknown scope raises KeyError."""
        within: dict[str, Callable[[], ApprovalQuerySet]] = {
            "mine": lambda: self.mine(user),
            "teams": lambda: self.visible_to(user).teams(user),
            "all": lambda: self.visible_to(user).open(),
            "decided": lambda: self.visible_to(user).decided(),
            "attention": lambda: self.visible_to(user).needs_attention(now),
        }
        return within[scope]()

    def by_due(self, now: datetime) -> ApprovalQuerySet:
        """In the inbox's order, each with its group in `due_group`: overdue, today, later, none.

        Today ends at midnight of the current time zone.
        """
        tomorrow = timezone.localtime(now).date() + timedelta(days=1)
        midnight = timezone.make_aware(datetime.combine(tomorrow, time.min))
        group = Case(
            When(due_at=None, then=Value(NO_DEADLINE)),
            When(due_at__lte=now, then=Value(OVERDUE)),
            When(due_at__lt=midnight, then=Value(TODAY)),
            default=Value(LATER),
            output_field=CharField(),
        )
        return self.annotate(due_group=group).order_by(F("due_at").asc(nulls_last=True), "opened_at", "pk")

    def for_list(self) -> ApprovalQuerySet:
        """With what a row of the inbox shows: run, assignee, and the number of votes in `votes_so_far`."""
        return self.select_related("run", "run__created_by", "run__on_behalf_of", "assignee").annotate(
            votes_so_far=Count("votes")
        )

    def called(self, text: str) -> ApprovalQuerySet:
        """Those whose id begins or ends with `text` (hex digits, hyphens ignored): people copy either end."""
        digits = text.strip().replace("-", "").lower()
        if not SHORTEST_ID <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
            return self.none()
        first, last = uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))
        plain = Replace(Cast("id", CharField()), Value("-"), Value(""))
        return self.annotate(plain_id=plain).filter(
            Q(id__gte=first, id__lte=last) | Q(plain_id__endswith=digits)
        )
