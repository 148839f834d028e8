"""Signed decisions: the person gives their password again, and what the signature means is kept with it in words."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import check_password
from django.utils import timezone

from approvals.models.activity import Activity
from approvals.text import storable_text
from approvals.words import APPROVE, EDIT, REFUSED, REJECT
from runs.core import codec
from runs.errors import Invalid, NotAllowed

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.models import Decision

MOST_WRONG, WITHIN = 5, timedelta(minutes=15)
WRONG = "signature: "  # how the trail's text of a wrong password begins


class NotSigned(Invalid):
    """The password is missing."""


class WrongPassword(NotSigned):
    """The password is wrong."""


def meaning(verdict: str) -> str:
    """What the signature says, to be shown before and kept after."""
    if verdict == REJECT:
        return "I have read this, and I reject it."
    if verdict in (APPROVE, EDIT):
        return "I have read this, and I approve that it is done exactly so."
    return "I have read this, and this is my answer."


def sign(by: User, verdict: str, password: str | None, now: datetime) -> str:
    """The signature as canonical JSON: name, user name, meaning, how, time zone.

    Raises NotSigned without a password, WrongPassword for another one, NotAllowed after five wrong ones in a quarter of
    an hour: whoever sits at an open browser may not try them all.
    """
    if not password:
        fault = "This is decided with a signature: give your password."
        raise NotSigned(fault, {"password": [fault]})
    wrong = Activity.objects.filter(by=by, kind=REFUSED, text__startswith=WRONG, at__gte=now - WITHIN)
    if wrong.count() >= MOST_WRONG:
        raise NotAllowed(
            f"{MOST_WRONG} wrong passwords in a row; wait a quarter of an hour, then sign again."
        )
    person = get_user_model().objects.get(pk=by.pk)  # with the password as it is now
    if not check_password(
        password, person.password
    ):  # the user's own method may rewrite it, which ends sessions
        fault = "This is not your password; nothing was signed."
        raise WrongPassword(fault, {"password": [fault]})
    return codec.dumps(
        {
            "name": storable_text(person.get_full_name() or person.get_username()),
            "user": person.get_username(),
            "meaning": meaning(verdict),
            "how": "password",
            "zone": timezone.get_current_timezone_name(),
        }
    )


def printed(decision: Decision) -> str:
    """Ada Lovelace signed at 14:06:09 CET on 2026-11-26: “I have read ...”; "" where it is not signed."""
    if not decision.signature:
        return ""
    said = json.loads(decision.signature)
    at = decision.at.astimezone(ZoneInfo(said["zone"])).strftime("%H:%M:%S %Z on %Y-%m-%d")
    return f"{said['name']} signed at {at}: “{said['meaning']}”"
