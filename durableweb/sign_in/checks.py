"""System checks of how people sign in, and of where notices may go."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any  # what Django hands to every check
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

HERE = frozenset({"localhost", "127.0.0.1", "::1"})
# Names by which clouds hand out credentials to whoever asks from inside.
NEVER = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"), ip_network("fd00:ec2::/32"))
WIDEST = {4: 8, 6: 16}  # shorter prefixes are a large part of the whole Internet

Apps = Sequence[AppConfig] | None


@register(Tags.security)
def provider(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    oidc = settings.OIDC
    if not oidc["url"]:
        return []
    problems: list[CheckMessage] = []
    if not _is_safe(oidc["url"]):
        problems.append(
            Error(
                "DURABLEWEB_OIDC_URL is not an https:// address: who listens could sign in as anybody.",
                hint="Write the issuer's address, such as https://id.example.com.",
                id="durableweb.E040",
            )
        )
    if not (oidc["client"] and oidc["secret"]):
        problems.append(
            Error(
                "DURABLEWEB_OIDC_URL is set, but the provider gave this site no name and secret.",
                hint="Set DURABLEWEB_OIDC_CLIENT and DURABLEWEB_OIDC_SECRET as the provider shows them.",
                id="durableweb.E041",
            )
        )
    if not (oidc["groups"] or oidc["anyone"]):
        problems.append(
            Error(
                "Nobody can sign in at the provider: no group of theirs is mapped to one of ours.",
                hint="Set DURABLEWEB_OIDC_GROUPS, or DURABLEWEB_OIDC_ANYONE=1 to let in everybody whom it knows.",
                id="durableweb.E042",
            )
        )
    return problems


@register(Tags.security)
def site_address(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    url = settings.DURABLEWEB["site_url"]
    if not url or _is_safe(url):
        return []
    return [
        Error(
            f"DURABLEWEB_SITE_URL is {url!r}: links in notices need an https:// address.",
            hint="Write the address at which people open this site, such as https://approvals.example.com.",
            id="durableweb.E043",
        )
    ]


@register(Tags.security)
def notice_networks(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    bad = [
        str(network)
        for network in settings.DURABLEWEB["notice_networks"]
        if network.prefixlen < WIDEST[network.version]
        or any(network.version == one.version and network.overlaps(one) for one in NEVER)
    ]
    if not bad:
        return []
    return [
        Error(
            f"DURABLEWEB_NOTICE_NETWORKS allows {', '.join(bad)}: too much, or where a cloud keeps credentials.",
            hint="Name the few networks in which your own receivers of notices are.",
            id="durableweb.E044",
        )
    ]


def _is_safe(url: str) -> bool:
    """https, or a machine talking to itself."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in HERE)
    )
