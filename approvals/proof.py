"""How a person signed in, and how they have shown since that it is them: from what allauth keeps in the session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any  # allauth's records are any JSON

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.utils.http import urlencode

from approvals.signing import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User
    from django.http import HttpRequest

FRESH_SECONDS = 300
SPENT = "signed_with"  # in the session: the moment of the last proof that signed something


def proof_of(request: HttpRequest) -> Proof | None:
    """What shows who is signed in, given within the last minutes and not used for a decision yet. Never a password:
    that is given with the decision itself."""
    spent = request.session.get(SPENT, 0)
    for record in reversed(get_authentication_records(request, request.user)):
        is_usable = record.get("reauthenticated") and record["method"] != "password" and record["at"] > spent
        if is_usable and time.time() - record["at"] < FRESH_SECONDS:
            return Proof(_how(record), record["at"])
    return None


def spend(request: HttpRequest, proof: Proof | None) -> None:
    """One proof signs one decision."""
    if proof is not None:
        request.session[SPENT] = proof.at


def signed_in(request: HttpRequest) -> str:
    """Such as "password and code", for the trail."""
    records = [
        one for one in get_authentication_records(request, request.user) if not one.get("reauthenticated")
    ]
    return " and ".join(dict.fromkeys(map(_how, records))) or "session"


def other_proofs(user: User, back: str) -> list[dict[str, str]]:
    """Ways to give one, the quickest first, each {"description", "url"}; the url leads back to the page at `back`."""
    ways = [way for way in get_adapter().get_reauthentication_methods(user) if way["id"] != "reauthenticate"]
    ways.sort(key=lambda way: not way["id"].endswith("webauthn"))
    return [
        {"description": way["description"], "url": f"{way['url']}?{urlencode({'next': back})}"}
        for way in ways
    ]


def _how(record: Mapping[str, Any]) -> str:
    if record["method"] == "mfa":
        words = {"webauthn": "passkey", "totp": "code", "recovery_codes": "spare code"}
        return words.get(record.get("type", ""), "code")
    if record["method"] == "socialaccount":
        return f"sign-in at {settings.OIDC['name']}"
    return str(record["method"])
