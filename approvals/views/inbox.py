from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from approvals.choices import Choices
from approvals.context import badge
from approvals.listing import Listing
from approvals.scopes import Numbers
from approvals.views.fetching import toast_of

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """The list; what is open in it has an address of its own."""
    listing = Listing.of(request.user, request.GET)
    if "until" in request.GET:
        return redirect(f"{request.path}{listing.filter.query}")
    numbers = Numbers(listing)
    context = {
        "listing": listing,
        "numbers": numbers,
        "choices": Choices(listing),
        "now": listing.now,
        "inbox_count": numbers.mine,
        "toast": toast_of(request),
    }
    return render(request, "approvals/inbox.html", context)


@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """The list; with `beside` in one answer with what changes when it does."""
    listing = Listing.of(request.user, request.GET, open_id=_open_id(request))
    context = {"listing": listing, "numbers": Numbers(listing), "now": listing.now}
    name = "approvals/_list_and_beside.html" if "beside" in request.GET else "approvals/_list.html"
    return render(request, name, context)


@require_safe
def fresh(request: HttpRequest) -> HttpResponse:
    listing = Listing.of(request.user, request.GET, open_id=_open_id(request))
    return render(request, "approvals/_new.html", {"listing": listing})


@require_safe
def count(request: HttpRequest) -> HttpResponse:
    return render(request, "shared/_count.html", {"inbox_count": badge(request.user)})


def _open_id(request: HttpRequest) -> str:
    """The approval beside the list; "" for none, or for what is no id."""
    try:
        return str(uuid.UUID(request.GET.get("open", "")))
    except ValueError:
        return ""
