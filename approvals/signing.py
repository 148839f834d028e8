"""Signed decisions: the person proves again who they are, and what the signature means is kept with it in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import check_password
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from approvals.models.activity import Activity
from approvals.text import respoken, storable_text
from approvals.words import APPROVE, EDIT, REFUSED, REJECT
from runs.core import codec
from runs.engine.durably import durably
from runs.errors import Invalid, NotAllowed, told

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.models import Decision

MOST_WRONG, WITHIN = 5, timedelta(minutes=15)
WRONG = "signature: "  # how the trail's text of a wrong password begins


@dataclass(frozen=True, slots=True)
class Proof:
    """That a person has just shown, otherwise than by password, who they are; `how` is "passkey" or the like."""

    how: str
    at: float  # seconds since 1970


class NotSigned(Invalid):
    """The password is missing, and there is no proof in its place."""


class WrongPassword(NotSigned):
    """The password is wrong."""


def meaning(verdict: str) -> str:
    """What the signature says: kept in English, shown in the language of who signs or reads."""
    if verdict == REJECT:
        return gettext_noop("I have read this, and I reject it.")
    if verdict in (APPROVE, EDIT):
        return gettext_noop("I have read this, and I approve that it is done exactly so.")
    return gettext_noop("I have read this, and this is my answer.")


def sign(by: User, verdict: str, password: str | None, proof: Proof | None, now: datetime) -> str:
    """The signature as canonical JSON: name, user name, meaning, how, time zone. A password counts before a proof.

    Raises NotSigned without either, WrongPassword for another one, NotAllowed after five wrong ones in a quarter of
    an hour: whoever sits at an open browser may not try them all.
    """
    if password:
        _must_be_password(by, password, now)
    elif proof is None:
        fault = (
            _("This is decided with a signature: give your password.")
            if by.has_usable_password()
            else _(
                "This is decided with a signature, and you have no password here: first confirm that it is you."
            )
        )
        raise NotSigned(fault, {"password": [fault]})
    return codec.dumps(
        {
            "name": storable_text(by.get_full_name() or by.get_username()),
            "user": by.get_username(),
            "meaning": meaning(verdict),
            "how": "password" if password else proof.how,
            "zone": timezone.get_current_timezone_name(),
            **({} if password else {"proved_at": proof.at}),
        }
    )


def must_be_unused(by: User, signature: str, now: datetime) -> None:
    """One proof signs one decision: told from the decisions, for two may come at once, also from two sessions.

    Within the transaction of the decision. Raises NotSigned.
    """
    proved_at = json.loads(signature).get("proved_at") if signature else None
    if proved_at is None:
        return
    _stand_in_line(by)
    recent = by.decisions.filter(at__gte=now - WITHIN).exclude(signature="")
    if any(
        json.loads(each).get("proved_at") == proved_at for each in recent.values_list("signature", flat=True)
    ):
        fault = _("What showed that it is you has signed another decision; confirm again that it is you.")
        raise NotSigned(fault, {"password": [fault]})


def _stand_in_line(by: User) -> None:
    get_user_model().objects.select_for_update(no_key=True).get(pk=by.pk)


def _must_be_password(by: User, password: str, now: datetime) -> None:
    """Looked at outside any lock, for that takes a while; what came of it is said only while there are tries left."""
    _must_have_tries(by, now)
    person = get_user_model().objects.get(pk=by.pk)  # with the password as it is now
    if not check_password(
        password, person.password
    ):  # the user's own method may rewrite it, which ends sessions
        fault = _("This is not your password; nothing was signed.")
        raise WrongPassword(fault, {"password": [fault]})
    durably(lambda: must_have_tries(by, now))


@transaction.atomic
def must_have_tries(by: User, now: datetime) -> None:
    """In one line with all who try for this person: within the caller's transaction a try can be counted.

    However many tries are under way, so no more than five are answered. Raises NotAllowed.
    """
    _stand_in_line(by)
    _must_have_tries(by, now)


def _must_have_tries(by: User, now: datetime) -> None:
    wrong = Activity.objects.filter(by=by, kind=REFUSED, text__startswith=WRONG, at__gte=now - WITHIN)
    if wrong.count() >= MOST_WRONG:
        raise NotAllowed(
            told(
                _("%(many)s wrong passwords in a row; wait a quarter of an hour, then sign again."),
                many=MOST_WRONG,
            )
        )


def printed(decision: Decision) -> str:
    """Ada Lovelace signed at 14:06:09 CET on 2026-11-26: “I have read ...”; "" where it is not signed."""
    if not decision.signature:
        return ""
    said = json.loads(decision.signature)
    at = decision.at.astimezone(ZoneInfo(said["zone"])).strftime("%H:%M:%S %Z on %Y-%m-%d")
    told_so = {"name": said["name"], "at": respoken(at), "meaning": gettext(said["meaning"])}
    return gettext("%(name)s signed at %(at)s: “%(meaning)s”") % told_so
