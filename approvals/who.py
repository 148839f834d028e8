"""Who may decide an approval, and why somebody may not: the one place that page, command and refusals ask.

The inbox asks the same rules of the database (`ApprovalQuerySet.may_decide`); a test compares the two over many people
and approvals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from approvals.models.reviewer import Reviewer
from runs import registry, sight
from runs.errors import either, told
from runs.naming import everyone, someone

if TYPE_CHECKING:
    from django.utils.functional import Promise

    from approvals.models import Approval

    Person = User | AnonymousUser | None


AMPLE_QUORUM = 3  # of more, and of anything but large groups, people are counted one by one
REQUESTERS = 2  # who started a run, and for whom it works


@dataclass(frozen=True, slots=True)
class Standing:
    """What one person is to an approval: `refused` says why they may not decide, in words to them; "" if they may.

    `instead_of` is who gave them their part in this one; None where they decide for themselves.
    """

    refused: str | Promise = ""
    instead_of: User | None = None


def why_not(approval: Approval, person: Person) -> str | Promise:
    """Why `person` may not decide this, in words to that person; "" if they may. Says nothing of open or closed."""
    return standing(approval, person).refused


def standing(approval: Approval, person: Person, *, called: list[str] | None = None) -> Standing:
    """Whether `person` may decide in the stage that decides now, and for whom.

    `called`: their names where these are known; a decision looks them up anew.
    """
    rows = list(approval.reviewers.all())
    barred = _bar(approval, person, rows)
    if barred:
        return Standing(barred)
    names = names_of(person) if called is None else called
    now_asked = [row for row in rows if row.stage == approval.stage and not row.excluded]
    for row in now_asked:
        if row.instead_of_id == person.pk:
            return Standing(
                told(
                    _("You gave your part in this to %(who)s; take it back to decide yourself."),
                    who=either(everyone([row.name])),
                )
            )
    if any(row.instead_of_id is None and row.name in names for row in now_asked):
        return Standing()
    for row in now_asked:
        if row.instead_of_id is not None and row.name == person.get_username() and row.instead_of.is_active:
            return Standing(instead_of=row.instead_of)
    return Standing(_not_asked(now_asked, rows, names))


def bar(approval: Approval, person: Person) -> str | Promise:
    """What keeps `person` from deciding this, whoever names them; "" if nothing does."""
    return _bar(approval, person, list(approval.reviewers.all()))


def _bar(approval: Approval, person: Person, rows: list[Reviewer]) -> str | Promise:
    if not is_person(person):
        return _("Only a signed-in person can decide; sign in first.")
    if not person.is_active:
        return told(_("The account %(who)s is switched off, so it cannot decide."), who=someone(person))
    run = approval.run
    if run.created_by_id == person.pk:
        return _("You started this run, so somebody else has to decide (four eyes).")
    if run.on_behalf_of_id == person.pk:
        return _("This run works on your behalf, so somebody else has to decide (four eyes).")
    excluded = {row.name for row in rows if row.excluded}
    if excluded and not excluded.isdisjoint(names_of(person)):
        return _("You are excluded from deciding this by the author of its graph.")
    if approval.stages and any(
        vote.by_id == person.pk and vote.stage != approval.stage for vote in approval.votes.all()
    ):
        return _("You have said yes in another stage of this; each stage asks other people.")
    return ""


def why_not_tend(approval: Approval, person: Person) -> str | Promise:
    """Why `person` may not move the deadline: for those who may decide, and the operators of the graph."""
    refused = why_not(approval, person)
    if not refused or bar(approval, person):
        return refused
    groups = set(person.groups.values_list("name", flat=True))
    return "" if approval.graph in registry.operated_by(groups) else refused


def is_person(person: Person) -> bool:
    """A user of ours: not an anonymous visitor, a token or nobody."""
    return isinstance(person, get_user_model()) and person.pk is not None


def names_of(person: User) -> list[str]:
    """What a person may be called by: their user name, then their groups'."""
    return [person.get_username(), *person.groups.values_list("name", flat=True)]


def ample_names() -> QuerySet[Group, str]:
    """Groups in which a quorum of AMPLE_QUORUM is met whoever of them the run works for."""
    members = Count("user", filter=Q(user__is_active=True))
    groups = Group.objects.annotate(people=members).filter(people__gte=AMPLE_QUORUM + REQUESTERS)
    return groups.values_list("name", flat=True)


def named(username: str) -> User | None:
    return get_user_model().objects.filter(username=username).first()


def able(approval: Approval) -> QuerySet[User]:
    """The people who may decide it in the stage that decides now, by name."""
    rows = [row for row in approval.reviewers.all() if row.stage == approval.stage and not row.excluded]
    names = [row.name for row in rows if row.instead_of_id is None]
    deputies = [row.name for row in rows if row.instead_of_id is not None and row.instead_of.is_active]
    away = [row.instead_of_id for row in rows if row.instead_of_id is not None]
    excluded = [row.name for row in approval.reviewers.all() if row.excluded]
    requesters = [pk for pk in (approval.run.created_by_id, approval.run.on_behalf_of_id) if pk is not None]
    people = get_user_model().objects
    barred = people.filter(Q(username__in=excluded) | Q(groups__name__in=excluded)).values("pk")
    named = Q(username__in=[*names, *deputies]) | Q(groups__name__in=names)
    found = people.filter(named, is_active=True).exclude(pk__in=requesters + away).exclude(pk__in=barred)
    if approval.stages:
        earlier = approval.votes.exclude(stage=approval.stage).values("by")
        found = found.exclude(pk__in=earlier)
    return found.distinct().order_by("username")


def stages_naming(approval: Approval, person: User) -> set[int]:
    """Numbers of the stages in which `person`, or a group of theirs, is named."""
    names = names_of(person)
    return {
        row.stage
        for row in approval.reviewers.all()
        if not row.excluded and row.instead_of_id is None and row.name in names
    }


def called(person: User) -> Q:
    """Over Reviewer: the name is that of `person`, or of one of their groups."""
    return Q(name__in=known_names(person))


def known_names(person: User) -> list[str]:
    """`names_of` for pages, which ask often: as they were at the first time in a request."""
    return [person.get_username(), *sight.group_names(person)]


def _not_asked(now_asked: list[Reviewer], rows: list[Reviewer], names: set[str]) -> str | Promise:
    shown = list(dict.fromkeys(row.shown for row in now_asked if row.instead_of_id is None))
    if not shown:
        return _("Nobody is named to decide this; ask the operators of its graph.")
    if any(row.name in names for row in rows if not row.excluded and row.instead_of_id is None):
        return told(
            _("It is the turn of %(people)s; you are asked in another stage."), people=either(everyone(shown))
        )
    return told(
        _("Only %(people)s can decide this, and you are not among them."), people=either(everyone(shown))
    )
