"""The site's addresses, and some that always fail: as a request that is broken, tried too often, or hits a fault."""

from __future__ import annotations

from allauth.core.ratelimit import respond_429
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.csrf import csrf_failure

from durableweb import urls


def broken(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation("for the gallery")


def faulty(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("for the gallery")


urlpatterns = [
    *urls.urlpatterns,
    path("failing/400/", login_not_required(broken)),
    path("failing/403-csrf/", csrf_failure),
    path("failing/429/", login_not_required(respond_429)),
    path("failing/500/", login_not_required(faulty)),
]
