"""Who has it, who decides for whom, and until when: forms of one approval."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from approvals import who
from approvals.forms.values import lines
from approvals.views.decision import revision_of
from approvals.views.tending import done
from runs.core.words import is_storable
from runs.errors import Conflict, Invalid
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    import uuid

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from approvals.models import Approval


@posted_from("approvals:approval")
def assignment(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Give it to somebody who may decide it."""

    def verb(approval: Approval) -> None:
        approval.assign(request.user, to=person_of(request), revision=revision_of(request))

    return done(request, pk, verb, said="hand_over", typed=request.POST.get("to", ""))


@posted_from("approvals:approval")
def part_given(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Give one's part to somebody else, or with `recall` take it back."""

    def verb(approval: Approval) -> None:
        if "recall" in request.POST:
            approval.recall(request.user, revision=revision_of(request))
        else:
            approval.delegate(request.user, to=person_of(request), revision=revision_of(request))

    return done(request, pk, verb, said="hand_over", typed=request.POST.get("to", ""))


@posted_from("approvals:approval")
def deadline(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Move it by as many minutes as the form says."""
    reason = lines(request.POST.get("reason", ""))

    def verb(approval: Approval) -> None:
        if approval.due_at is None:
            raise Conflict(_("This has no deadline, so there is none to move."))
        until = approval.due_at + timedelta(minutes=_minutes(request))
        approval.extend(request.user, until, reason=reason, revision=revision_of(request))

    return done(request, pk, verb, said="deadline", typed=reason)


def person_of(request: HttpRequest) -> User:
    """Whom the field `to` names. Raises Invalid for nobody."""
    name = request.POST.get("to", "").strip()
    person = who.named(name) if name and is_storable(name) else None
    if person is None:
        said = _("There is no user of that name; write it as they sign in.")
        raise Invalid(said, {"to": [said]})
    return person


def _minutes(request: HttpRequest) -> int:
    given = request.POST.get("minutes", "")
    if given.isdecimal() and len(given) <= 6:
        return int(given)
    said = _("Choose how far the deadline moves.")
    raise Invalid(said, {"minutes": [said]})
