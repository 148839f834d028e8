"""Addresses that buttons send to. People come to them by a link as well, and are led to the page of the button."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any  # what a route hands its view

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

View = Callable[..., HttpResponseBase]


def posted_from(page: str) -> Callable[[View], View]:
    """A view that takes POST. Who opens its address is led to the `page`, of the same ids and with the same query.

    `page`: the name of a route, or a path. So come those who pressed a button after their session was over and have
    signed in again, and those who reload what was refused: nothing is done, and they are told so.
    """

    def taken(view: View) -> View:
        @wraps(view)
        @require_http_methods(["GET", "HEAD", "POST"])
        def lead(request: HttpRequest, *args: Any, **ids: Any) -> HttpResponseBase:
            if request.method == "POST":
                return view(request, *args, **ids)
            if request.user.is_authenticated and request.method == "GET":
                said = _(
                    "Nothing was done by coming here. What you pressed before you signed in, press again."
                )
                messages.info(request, said)
            query = request.META["QUERY_STRING"]
            return HttpResponseRedirect(f"{resolve_url(page, **ids)}{'?' if query else ''}{query}")

        return lead

    return taken
