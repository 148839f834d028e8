from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from approvals.files import LARGEST, MOST_AT_ONCE, Sent
from approvals.forms.values import lines
from approvals.listing import Listing
from approvals.models import KeptDraft
from approvals.pages import ApprovalPage
from approvals.trouble import Trouble
from approvals.views.approval import show
from approvals.views.fetching import fetch
from runs.engine import blobs
from runs.errors import Missing, Refusal
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from django.http import HttpRequest

    from approvals.models import Approval


@posted_from("approvals:approval")
def comment(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Say something; `mention` is a name chosen from the list, which goes into the text where it is not yet."""
    text = lines(request.POST.get("text", ""))
    name = request.POST.get("mention", "").strip().lstrip("@")
    if name and f"@{name}" not in text:
        text = f"@{name} {text}".rstrip()

    def verb(approval: Approval) -> None:
        approval.comment(request.user, text, _files(request))
        KeptDraft.keep(approval, request.user, comment="")

    return done(request, pk, verb, "activity", said="comment", typed=text)


def _files(request: HttpRequest) -> list[Sent]:
    """What was sent; of what is too large no more is read than says so."""
    sent = request.FILES.getlist("files")[: MOST_AT_ONCE + 1]
    return [Sent(file.name or "", file.read(LARGEST + 1)) for file in sent]


@require_safe
def attachment(request: HttpRequest, pk: uuid.UUID, number: int) -> HttpResponse:
    """The bytes of an attachment, for who may see the approval: as a file to keep, never as a page."""
    file = get_object_or_404(fetch(request.user, pk).attachments, pk=number)
    try:
        content = blobs.read(file.approval.run_id, file.blob_id)
    except blobs.BlobGone as gone:
        raise Http404(str(gone)) from gone
    answer = HttpResponse(content, content_type=file.media_type)
    answer["Content-Disposition"] = content_disposition_header(True, file.name)
    answer["Content-Security-Policy"] = "sandbox; default-src 'none'"
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "private, no-store"
    return answer


@posted_from("approvals:approval")
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
