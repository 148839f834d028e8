"""A person who is signed in proves again who they are, by signing in anew at their provider."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any  # allauth's state is any JSON

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.account.utils import get_next_redirect_url
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from durableweb.sign_in.claims import Claims
from durableweb.sign_in.onward import onward

METHOD = "socialaccount"  # allauth's word for: at a provider
FRESH_SECONDS = 300
CLOCKS_DIFFER_SECONDS = 60  # between us and the provider


@require_http_methods(["GET", "HEAD", "POST"])
def confirm_by_provider(request: HttpRequest) -> HttpResponse:
    """GET says what will happen; POST leads to the provider, which is told to ask again."""
    provider, back = provider_of(request.user), get_next_redirect_url(request) or reverse("mfa_index")
    if provider is None:
        return render(request, "account/not_confirmed.html", {"back": back}, status=403)
    if request.method != "POST":
        return render(request, "account/confirm_by_provider.html", {"provider": provider, "next": back})
    at = get_adapter().get_provider(request, provider["id"])
    response = at.redirect(
        request,
        process=AuthProcess.REDIRECT,
        next_url=back,
        data={"confirm_since": time.time()},
        auth_params={"prompt": "login", "max_age": "0"},
    )
    return onward(request, response)


def is_asked(state: Mapping[str, Any]) -> bool:
    """Whether a person who comes back had been sent to confirm themselves. Only the view above writes `data`."""
    return "confirm_since" in (state.get("data") or {})


def confirm(request: HttpRequest, sociallogin: SocialLogin, claims: Claims) -> None:
    """Note that they are who is signed in here, and that the provider has asked them just now.

    Refused with a page (ImmediateHttpResponse) if it is somebody else, or the provider does not say when it asked.
    """
    since = sociallogin.state["data"]["confirm_since"]
    asked_at = claims.signed_in_at
    is_same = request.user.is_authenticated and sociallogin.is_existing and sociallogin.user == request.user
    if not is_same or asked_at is None or asked_at < since - CLOCKS_DIFFER_SECONDS:
        back = sociallogin.get_redirect_url(request) or "/"
        context = {"back": back, "is_same": is_same, "provider": settings.OIDC["name"]}
        raise ImmediateHttpResponse(render(request, "account/not_confirmed.html", context, status=403))
    account = sociallogin.account
    record_authentication(
        request, request.user, METHOD, provider=account.provider, uid=account.uid, reauthenticated=True
    )


def is_fresh(request: HttpRequest) -> bool:
    """Whether they confirmed themselves so within the last minutes, in this session."""
    records = [
        one
        for one in get_authentication_records(request, request.user)
        if one.get("method") == METHOD and one.get("reauthenticated")
    ]
    return bool(records) and time.time() - records[-1]["at"] < FRESH_SECONDS


def provider_of(user: AbstractBaseUser) -> dict[str, str] | None:
    """The provider at which this person has an account: {"id", "name"}."""
    if not settings.OIDC["url"] or account_of(user) is None:
        return None
    return {"id": settings.OIDC["id"], "name": settings.OIDC["name"]}


def account_of(user: AbstractBaseUser) -> SocialAccount | None:
    return SocialAccount.objects.filter(user_id=user.pk, provider=settings.OIDC["id"]).first()
