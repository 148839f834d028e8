from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from approvals.choices import Choices
from approvals.drafts import keep_typed, take_up
from approvals.forms.posted import add_row, read_draft, remove_row
from approvals.forms.problems import problems
from approvals.forms.values import lines
from approvals.listing import Listing
from approvals.models import KeptDraft
from approvals.models.draft import TEXTS
from approvals.neighbours import Standing
from approvals.pages import ApprovalPage
from approvals.proof import proof_of
from approvals.scopes import Numbers
from approvals.views.fetching import Erased, fetch, toast_of
from runs.engine import clock
from runs.errors import Invalid
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    import uuid

    from django.http import HttpRequest

ALL = "all"  # state, people and acts in one answer
PARTS = {
    ALL: "approvals/_parts.html",
    "state": "approvals/_state.html",
    "people": "approvals/_people.html",
    "acts": "approvals/_action_bar.html",
    "notice": "approvals/_notice.html",
}


@require_safe
def approval(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    try:
        page = ApprovalPage(fetch(request.user, pk), request.user)
    except Erased as erased:
        return redirect(erased.run)  # its page says by whom, and why
    return show(request, page)


@require_safe
def part(request: HttpRequest, pk: uuid.UUID, part: str) -> HttpResponse:
    """One live part of the page, as the page itself includes it; or all that change together, read once for all."""
    if part not in PARTS:
        raise Http404(f"There is no part {part!r}.")
    page = ApprovalPage(fetch(request.user, pk), request.user)
    page.proof = proof_of(request)
    has_acts = part in (ALL, "acts")
    if has_acts:
        take_up(page)
    if request.GET.get("seen", "").isdecimal():
        page.seen_revision = int(request.GET["seen"][:9])
    listing = Listing.of(request.user, request.GET, page.now)
    context = {"page": page, "approval": page.approval, "now": page.now, "listing": listing}
    if has_acts:
        context["place"] = Standing.of(page.approval, listing)
    return render(request, PARTS[part], context)


@posted_from("approvals:approval")
def draft(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """The form as it would look with what was typed, which decides nothing. Rows of lists come and go here, too."""
    page = ApprovalPage(fetch(request.user, pk), request.user)
    entries = request.POST.copy()
    if "add" in entries:
        add_row(entries, entries["add"])
    elif "remove" in entries:
        remove_row(entries, entries["remove"])
    payload, schema = page.blank()
    page.given = read_draft(entries, payload, schema)
    if {"add", "remove"} & entries.keys():
        page.given = page.given.without_errors()
    elif not page.given.errors and page.given.is_edited:
        page.given = page.given.with_errors(problems(page.given.payload, schema))
    if request.htmx or request.headers.get("X-Requested-With") == "fetch":
        listing = Listing.of(request.user, request.GET, page.now)
        context = {"page": page, "approval": page.approval, "now": page.now, "listing": listing}
        return render(request, "approvals/_form.html", context)
    keep_typed(page, page.given, entries.get("table", "")[:64])
    return show(request, page)


@posted_from("approvals:approval")
def kept(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Keep what is being typed; a name that is not sent stays as it was. With `discard` the edit goes."""
    approval = fetch(request.user, pk)
    if "discard" in request.POST:
        KeptDraft.keep(approval, request.user, json="")
        query = Listing.of(request.user, request.GET).filter.query
        return redirect(f"{approval.get_absolute_url()}{query}")
    typed = {name: lines(request.POST[name]) for name in {"json", "table", *TEXTS} & request.POST.keys()}
    try:
        KeptDraft.keep(approval, request.user, **typed)
    except Invalid as refusal:
        return HttpResponse(refusal.message, status=refusal.status, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204, headers={"Kept-At": clock.now().isoformat()})


def show(request: HttpRequest, page: ApprovalPage, status: int = 200) -> HttpResponse:
    """The page of one approval beside its list, with what this person typed before."""
    take_up(page)
    page.proof = proof_of(request)
    listing = Listing.of(request.user, request.GET, page.now, str(page.approval.pk))
    numbers = Numbers(listing)
    context = {
        "page": page,
        "approval": page.approval,
        "listing": listing,
        "numbers": numbers,
        "choices": Choices(listing),
        "place": Standing.of(page.approval, listing),
        "now": page.now,
        "inbox_count": numbers.mine,
        "toast": toast_of(request),
    }
    return render(request, "approvals/approval.html", context, status=status)
