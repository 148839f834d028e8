from __future__ import annotations

from typing import TYPE_CHECKING, Any  # payloads are any JSON

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from approvals import words
from approvals.contracts import sheet
from approvals.drafts import give_back, keep_typed
from approvals.forms.posted import Draft, read_draft
from approvals.forms.values import lines
from approvals.listing import Listing
from approvals.neighbours import next_open
from approvals.pages import ApprovalPage
from approvals.proof import proof_of, signed_in, spend
from approvals.refusals import must_be_open
from approvals.said import AS_PROPOSED
from approvals.trouble import Trouble
from approvals.views.approval import show
from approvals.views.fetching import fetch
from runs.errors import Conflict, Invalid, Missing, Refusal
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest


@posted_from("approvals:approval")
def decision(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Decide as the form says, then open the next item; a refusal shows the page with what was typed."""
    page = ApprovalPage(fetch(request.user, pk), request.user)
    draft = read_draft(request.POST, *page.blank())
    verdict, reason, proof = request.POST.get("verdict", ""), reason_of(request), proof_of(request)
    try:
        if verdict != words.REJECT and draft.errors:
            raise Invalid(_("Some of it cannot be read; nothing was decided."), draft.errors)
        page.approval.decide(
            by=request.user,
            verdict=_meant(verdict, draft, page),
            payload=_payload(verdict, draft, page, reason),
            reason=reason,
            revision=revision_of(request),
            operation_id=request.POST.get("operation_id") or None,
            via="page",
            seen=page.seen,
            signed_in=signed_in(request),
            password=request.POST.get("password"),
            proof=proof,
        )
    except Missing as gone:
        raise Http404(gone.message) from gone
    except Refusal as refusal:
        return _refused(request, pk, refusal, draft, verdict, reason)
    if page.is_signed and not request.POST.get("password"):
        spend(request, proof)
    listing = Listing.of(request.user, request.GET)
    return _onward(listing, page)


@posted_from("approvals:approval")
def undo(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Take back what one decided, or one's vote while others are missing."""
    approval = fetch(request.user, pk)
    page = ApprovalPage(approval, request.user)
    withdrawn = page.my_vote if approval.is_open else page.conclusion
    try:
        if approval.is_open:
            approval.take_back(by=request.user)
        else:
            approval.undo(by=request.user)
    except Missing as gone:
        raise Http404(gone.message) from gone
    except Refusal as refusal:
        fresh = fetch(request.user, pk)
        trouble = Trouble(refusal.status, refusal.message)
        return show(request, ApprovalPage(fresh, request.user, trouble=trouble), refusal.status)
    if withdrawn is not None:
        try:
            give_back(approval, request.user, withdrawn)
        except Invalid as lost:
            said = _("What you had typed could not be put back: %(why)s") % {"why": lost.message}
            page = ApprovalPage(fetch(request.user, pk), request.user, trouble=Trouble(200, said))
            return show(request, page, 200)
    return redirect(f"{approval.get_absolute_url()}{Listing.of(request.user, request.GET).filter.query}")


def reason_of(request: HttpRequest) -> str:
    """A preset, own words, or both; own words alone reach the run byte for byte."""
    preset, own = request.POST.get("preset", ""), lines(request.POST.get("reason", ""))
    return f"{preset}\n{own}" if preset and own.strip() else own if own.strip() else preset


def _meant(verdict: str, draft: Draft, page: ApprovalPage) -> str:
    """The button says approve; whether that is an edit, the payload says."""
    if verdict == words.APPROVE and draft.is_edited and words.EDIT in page.approval.verdicts:
        return words.EDIT
    return verdict


def _payload(verdict: str, draft: Draft, page: ApprovalPage, reason: str) -> Any:
    if verdict == words.RESPOND and not page.answers_only and not page.schema and not draft.is_edited:
        return reason
    if page.contract is not None and verdict == words.RESPOND:
        return sheet.answer(page.contract, draft.payload)
    if verdict in (words.RESPOND, words.EDIT) or draft.is_edited:
        return draft.payload
    return AS_PROPOSED


def revision_of(request: HttpRequest) -> int:
    try:
        return int(request.POST.get("revision", ""))
    except ValueError:
        said = _("The form does not say what it was made from; load the page again.")
        raise Invalid(said, {"revision": [said]}) from None


def _refused(
    request: HttpRequest, pk: uuid.UUID, refusal: Refusal, draft: Draft, verdict: str, reason: str
) -> HttpResponse:
    page = ApprovalPage(fetch(request.user, pk), request.user)
    texts = {"reason": reason} if verdict == words.REJECT else {"words": reason}
    keep_typed(page, draft, request.POST.get("table", "")[:64], **texts)
    if isinstance(refusal, Invalid):
        refusal = _closed(page) or refusal
    fields = getattr(refusal, "fields", {})
    page.trouble = Trouble(refusal.status, refusal.message, draft, reason, verdict, fields)
    if not page.trouble.is_conflict:
        page.given = draft.with_errors(
            {path: texts for path, texts in fields.items() if path not in draft.errors}
        )
    return show(request, page, refusal.status)


def _closed(page: ApprovalPage) -> Refusal | None:
    """That others have decided matters more than what is wrong with an edit."""
    try:
        must_be_open(page.approval)
    except Conflict as conflict:
        return conflict
    return None


def _onward(listing: Listing, page: ApprovalPage) -> HttpResponse:
    """The next open item of the same list, or the list; the address says what was just decided."""
    following = next_open(page.approval, listing)
    address = following.get_absolute_url() if following else reverse("approvals:inbox")
    query = listing.filter.query
    return redirect(f"{address}{query}{'&' if query else '?'}{urlencode({'decided': page.approval.pk})}")
