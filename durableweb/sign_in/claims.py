"""What a provider of identities says about a person, and which of our groups that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # claims are any JSON

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction


@dataclass(frozen=True, slots=True)
class Claims:
    """`userinfo` and `id_token` of one sign-in; the former wins where both speak."""

    userinfo: Mapping[str, Any]
    id_token: Mapping[str, Any]

    @classmethod
    def of(cls, extra: Mapping[str, Any]) -> Claims:
        """From allauth's `SocialAccount.extra_data`."""
        return cls(extra.get("userinfo") or {}, extra.get("id_token") or {})

    @property
    def values(self) -> set[str]:
        """Of the claim that names groups (DURABLEWEB_OIDC_CLAIM): a list of texts, or one text."""
        name = settings.OIDC["claim"]
        said = self.userinfo.get(name, self.id_token.get(name))
        listed = said if isinstance(said, list) else [said]
        return {value for value in listed if isinstance(value, str)}

    @property
    def groups(self) -> set[str]:
        """Names of our groups that this person is in, by the mapping."""
        return {group for value, group in settings.OIDC["groups"] if value in self.values}

    @property
    def is_admitted(self) -> bool:
        return bool(settings.OIDC["anyone"] or self.groups)

    @property
    def signed_in_at(self) -> float | None:
        """When the person last proved to the provider who they are, in seconds since 1970; None if it does not say."""
        said = self.id_token.get("auth_time")
        return float(said) if isinstance(said, (int, float)) and not isinstance(said, bool) else None


@transaction.atomic
def keep_groups(user: User, claims: Claims) -> None:
    """Of the groups that the mapping names, `user` is in those that the provider says; others stay as they are."""
    mapped = {group for _value, group in settings.OIDC["groups"]}
    for name in mapped:
        group, _made = Group.objects.get_or_create(name=name)
        if name in claims.groups:
            user.groups.add(group)
        else:
            user.groups.remove(group)
