from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from approvals.forms.values import lines
from approvals.listing import Listing
from approvals.models import KeptDraft
from approvals.pages import ApprovalPage, Trouble
from approvals.views.approval import show
from approvals.views.fetching import fetch
from runs.errors import Missing, Refusal

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from approvals.models import Approval


@require_POST
def comment(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    text = lines(request.POST.get("text", ""))

    def verb(approval: Approval) -> None:
        approval.comment(request.user, text)
        KeptDraft.keep(approval, request.user, comment="")

    return done(request, pk, verb, "activity", said="comment", typed=text)


@require_POST
def claim(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Take it, or with `release` let go of it."""

    def verb(approval: Approval) -> None:
        if "release" in request.POST:
            approval.release(request.user)
        else:
            approval.claim(request.user)

    return done(request, pk, verb)


def done(
    request: HttpRequest,
    pk: uuid.UUID,
    verb: Callable[[Approval], object],
    anchor: str = "",
    said: str = "claim",
    typed: str = "",
) -> HttpResponse:
    """Do it and show the page again; if it is refused, with what was `typed` into the form named by `said`."""
    approval = fetch(request.user, pk)
    try:
        verb(approval)
    except Missing as gone:
        raise Http404(gone.message) from gone
    except Refusal as refusal:
        page = ApprovalPage(fetch(request.user, pk), request.user)
        fields = getattr(refusal, "fields", {})
        page.trouble = Trouble(refusal.status, refusal.message, reason=typed, verdict=said, fields=fields)
        return show(request, page, refusal.status)
    place = f"#{anchor}" if anchor else ""
    return redirect(
        f"{approval.get_absolute_url()}{Listing.of(request.user, request.GET).filter.query}{place}"
    )
