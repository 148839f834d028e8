"""Where allauth's pages need another step."""

from __future__ import annotations

from allauth.account.internal.stagekit import clear_login
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from durableweb.sign_in.onward import onward
from runs.pages.posting import posted_from


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def at_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    """GET asks whether to go there; POST goes."""
    if request.method == "HEAD":
        request.method = "GET"  # allauth would go there
    return onward(request, openid_connect.login(request, provider_id))


@login_not_required
@posted_from("login")
def not_now(request: HttpRequest) -> HttpResponse:
    """Leave a sign-in of which the second step is missing."""
    clear_login(request)
    return redirect("login")


@require_safe
def without_password(request: HttpRequest) -> HttpResponse:
    """Whom a provider vouches for has no password here, and gets none: what it takes back would still open."""
    return render(request, "account/without_password.html")
