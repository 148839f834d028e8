"""What administrators see of how people sign in: enough to take away a lost phone, and no secret."""

from __future__ import annotations

from typing import Any  # Django's admin hands over any row

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import display

from runs.admin_words import call
from runs.naming import for_operators

call(
    Authenticator,
    _("second factor"),
    _("second factors"),
    type=_("kind"),
    created_at=_("created at"),
    last_used_at=_("last used at"),
)
call(SocialAccount, _("account elsewhere"), _("accounts elsewhere"), uid=_("name there"))


class Removable(ModelAdmin):
    """Can be looked at and deleted."""

    @display(description=_("person"), ordering="user__username")
    def person(self, row: Any) -> str:
        return for_operators(row.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class AuthenticatorAdmin(Removable):
    fields = readonly_fields = list_display = ("person", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__username",)
    empty_says = _("The passkeys and apps for codes that people set up appear here.")


class AccountAdmin(Removable):
    fields = readonly_fields = list_display = ("person", "provider", "uid", "date_joined", "last_login")
    list_select_related = ("user",)
    search_fields = ("user__username", "uid")
    empty_says = _("Who has signed in by a provider appears here.")


def register() -> None:
    """In the place of allauth's own pages, which show secrets and can add providers."""
    for model in (Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken):
        try:
            admin.site.unregister(model)
        except NotRegistered:
            pass
    admin.site.register(Authenticator, AuthenticatorAdmin)
    admin.site.register(SocialAccount, AccountAdmin)
