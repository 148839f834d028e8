"""Who may decide an approval, and why somebody may not: the one place that page, API and refusals ask.

The inbox asks the same rules of the database (`ApprovalQuerySet.may_decide`); a test compares the two over many people
and approvals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from approvals.models.reviewer import Reviewer
from runs.models import Run

if TYPE_CHECKING:
    from approvals.models import Approval

    Person = User | AnonymousUser | None


def why_not(approval: Approval, person: Person) -> str:
    """Why `person` may not decide this, in words to that person; "" if they may. Says nothing of open or closed."""
    if not is_person(person):
        return "Only a signed-in person can decide; sign in first."
    if not person.is_active:
        return f"The account {person.get_username()} is switched off, so it cannot decide."
    run = approval.run
    if run.created_by_id == person.pk:
        return "You started this run, so somebody else has to decide (four eyes)."
    if run.on_behalf_of_id == person.pk:
        return "This run works on your behalf, so somebody else has to decide (four eyes)."
    names = {person.get_username(), *person.groups.values_list("name", flat=True)}
    reviewers, excluded = approval.named_people()
    if not names.isdisjoint(excluded):
        return "You are excluded from deciding this by the author of its graph."
    if not reviewers:
        return "Nobody is named to decide this; ask the operators of its graph."
    if names.isdisjoint(reviewers):
        return f"Only {' or '.join(reviewers)} can decide this, and you are not among them."
    return ""


def is_person(person: Person) -> bool:
    """A user of ours: not an anonymous visitor, a token or nobody."""
    return isinstance(person, get_user_model()) and person.pk is not None


def able(approval: Approval) -> QuerySet[User]:
    """The people who may decide it, by name."""
    names, excluded = approval.named_people()
    requesters = [pk for pk in (approval.run.created_by_id, approval.run.on_behalf_of_id) if pk is not None]
    people = get_user_model().objects
    barred = people.filter(Q(username__in=excluded) | Q(groups__name__in=excluded)).values("pk")
    return (
        people.filter(Q(username__in=names) | Q(groups__name__in=names), is_active=True)
        .exclude(pk__in=requesters)
        .exclude(pk__in=barred)
        .distinct()
        .order_by("username")
    )


def called(person: User | OuterRef) -> Q:
    """Over Reviewer: the name is that of `person`, or of one of their groups."""
    if isinstance(person, OuterRef):
        return Q(name=OuterRef("username")) | Q(
            name__in=Group.objects.filter(user=OuterRef(OuterRef("pk"))).values("name")
        )
    return Q(name=person.get_username()) | Q(name__in=Group.objects.filter(user=person).values("name"))


def able_count() -> Coalesce:
    """Over Approval: how many people may decide it."""
    named = Reviewer.objects.filter(called(OuterRef("pk")), approval=OuterRef(OuterRef("pk")))
    requester = Run.objects.filter(
        Q(created_by=OuterRef("pk")) | Q(on_behalf_of=OuterRef("pk")), pk=OuterRef(OuterRef("run"))
    )
    people = get_user_model().objects.filter(
        Exists(named.filter(excluded=False)),
        ~Exists(named.filter(excluded=True)),
        ~Exists(requester),
        is_active=True,
    )
    counted = people.order_by().values("is_active").annotate(people=Count("pk")).values("people")
    return Coalesce(Subquery(counted), 0)
