"""The page for what is not there, as people see it: also while DEBUG is on, where Django would list all routes."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.defaults import page_not_found


class OwnNotFoundMiddleware:
    """The demo runs with DEBUG, for the page of an error that is ours (500); that of 404 is for whoever mistypes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if settings.DEBUG and response.status_code == 404 and request.resolver_match is None:  # no route fits
            return page_not_found(request, Http404())
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return page_not_found(request, error) if settings.DEBUG and isinstance(error, Http404) else None
