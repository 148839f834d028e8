"""The way from a form of ours to a provider's pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render


def onward(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A page that leads on by itself, in place of a redirect to another site.

    Browsers hold every redirect that follows a form to the page's form-action, and a provider may have many addresses.
    """
    if not isinstance(response, HttpResponseRedirect) or response.url.startswith("/"):
        return response
    return render(request, "account/onward.html", {"address": response.url})
