from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from approvals.forms.values import lines
from approvals.listing import Listing
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
    return _done(request, pk, lambda approval: approval.comment(request.user, text), "activity", comment=text)


@require_POST
def claim(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Take it, or with `release` let go of it."""

    def verb(approval: Approval) -> None:
        if "release" in request.POST:
            approval.release(request.user)
        else:
            approval.claim(request.user)

    return _done(request, pk, verb)


def _done(
    request: HttpRequest,
    pk: uuid.UUID,
    verb: Callable[[Approval], object],
    anchor: str = "",
    comment: str = "",
) -> HttpResponse:
    approval = fetch(request.user, pk)
    try:
        verb(approval)
    except Missing as gone:
        raise Http404(gone.message) from gone
    except Refusal as refusal:
        page = ApprovalPage(fetch(request.user, pk), request.user)
        page.trouble = Trouble(refusal.status, refusal.message, reason=comment, verdict="comment")
        return show(request, page, refusal.status)
    place = f"#{anchor}" if anchor else ""
    return redirect(
        f"{approval.get_absolute_url()}{Listing.of(request.user, request.GET).filter.query}{place}"
    )
