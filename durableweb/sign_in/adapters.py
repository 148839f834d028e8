"""What allauth asks of this site: who may have an account, what a person may be called, how they confirm themselves."""

from __future__ import annotations

import re
from typing import Any  # allauth hands over whatever it has

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.manage_email import assess_unique_email
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, Group, User
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import sealing
from durableweb.sign_in import confirming
from durableweb.sign_in.claims import Claims, keep_groups
from runs import audience

SILENT = "account/messages/logged_in.txt"


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": gettext_lazy("This name and password do not go together."),
        "too_many_login_attempts": gettext_lazy(
            "Too many wrong passwords. Wait a few minutes, then try again."
        ),
        "username_of_group": gettext_lazy("A group is called so; a person cannot be."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Reviewers are named by user or group: who could choose a group's name would decide in its place. A group that
        the provider's groups are mapped to, or that a graph declares, counts before anybody has made it, too."""
        coming = {group for _value, group in settings.OIDC["groups"]} | audience.declared_groups()
        named = username.lower() in {group.lower() for group in coming}
        if named or Group.objects.filter(name__iexact=username).exists():
            raise self.validation_error("username_of_group")
        return super().clean_username(username, shallow)

    def get_reauthentication_methods(self, user: AbstractBaseUser) -> list[dict[str, str]]:
        words = {
            "reauthenticate": _("With your password"),
            "mfa_reauthenticate": _("With a code"),
            "mfa_reauthenticate:webauthn": _("With a passkey"),
        }
        ways = [
            way | {"description": words.get(way["id"], way["description"])}
            for way in super().get_reauthentication_methods(user)
        ]
        if provider := confirming.provider_of(user):
            said = _("By signing in at %(provider)s again") % {"provider": provider["name"]}
            ways.append({"id": "provider", "description": said, "url": reverse("confirm_by_provider")})
        return ways

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        return super().is_reauthentication_required(app=app, **more) and not confirming.is_fresh(
            context.request
        )

    def add_message(self, request: HttpRequest, level: int, message_template: str | None = None, *rest: Any,
                    **more: Any) -> None:  # fmt: skip
        """That one has signed in, the page itself shows."""
        if message_template != SILENT:
            super().add_message(request, level, message_template, *rest, **more)


class ProviderAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True  # who is let in is told by their claims, before this is asked

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Let in, or not, who comes back from the provider, and take over their groups."""
        claims = Claims.of(sociallogin.account.extra_data)
        if confirming.is_asked(sociallogin.state):
            confirming.confirm(request, sociallogin, claims)
            return
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        if sociallogin.is_existing:
            keep_groups(sociallogin.user, claims)
        if not claims.is_admitted:
            raise ImmediateHttpResponse(render(request, "account/not_admitted.html", status=403))
        if not sociallogin.is_existing and self._address_is_taken(sociallogin):
            raise ImmediateHttpResponse(render(request, "account/address_taken.html", status=409))

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        user = super().save_user(request, sociallogin, form)
        keep_groups(user, Claims.of(sociallogin.account.extra_data))
        return user

    def _address_is_taken(self, sociallogin: SocialLogin) -> bool:
        """An account that has the address already is not handed over: whose it is, its password tells."""
        addresses = [one.email for one in sociallogin.email_addresses]
        return any(assess_unique_email(address) is not True for address in addresses)


class FactorAdapter(DefaultMFAAdapter):
    """Secrets of codes are stored sealed with the site's key."""

    def encrypt(self, text: str) -> str:
        return sealing.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return sealing.unseal(encrypted_text)

    def build_totp_svg(self, url: str) -> SafeString:
        """The drawing as a part of the page: a policy allows it wherever it allows the page."""
        return mark_safe(re.sub(r"^<\?xml.*?\?>\s*", "", super().build_totp_svg(url)))

    def generate_authenticator_name(self, user: AbstractBaseUser, type: str) -> str:
        number = user.authenticator_set.filter(type=type).count() + 1
        return _("Passkey") if number == 1 else _("Passkey %(number)s") % {"number": number}
