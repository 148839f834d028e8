"""What a browser, or what lies between, may keep of a page: of what only the signed-in see, nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase


class KeepNothingMiddleware:
    """After signing out, the back button shows no page that others may not see. A view may say otherwise itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not response.has_header("Cache-Control") and request.user.is_authenticated:
            response["Cache-Control"] = "no-store"
        return response
