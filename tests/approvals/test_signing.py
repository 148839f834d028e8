"""Signed decisions: the password again, and what the signature means kept in words."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from approvals.chain import first_break
from approvals.models import Decision
from approvals.signing import MOST_WRONG, printed
from approvals.words import VERDICTS, VIAS
from runs.engine import clock
from runs.errors import Invalid, NotAllowed
from runs.models import LedgerEntry
from tests.approvals.cases import MAIL, answer_of, ask, told
from tests.runs.driving import pass_time

pytestmark = pytest.mark.django_db


def sent_with(verdict):
    """What a decision of that kind needs besides."""
    payload = {"edit": {**MAIL, "copies": 9}, "respond": "Ask Helen."}
    return {"reason": "x", **({"payload": payload[verdict]} if verdict in payload else {})}


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("via", VIAS)
def test_nothing_is_decided_without_the_password_whatever_way_it_comes(ada, via, verdict):
    approval = ask(sign=True, verdicts=list(VERDICTS))
    with pytest.raises(Invalid, match="signature") as refused:
        approval.decide(by=ada, verdict=verdict, via=via, **sent_with(verdict))
    assert list(refused.value.fields) == ["password"]
    assert not Decision.objects.exists()


def test_the_signature_says_who_what_and_where(ada):
    ada.first_name, ada.last_name = "Ada", "Lovelace"
    ada.save()
    approval = ask(sign=True)
    decision = approval.decide(by=ada, verdict="approve", password="ada")
    assert printed(decision).startswith("Ada Lovelace signed at ")
    assert printed(decision).endswith(": “I have read this, and I approve that it is done exactly so.”")
    assert " UTC on " in printed(decision)
    entry = LedgerEntry.objects.get(pk=approval.entry_id)
    assert entry.effective_at == entry.answered_at  # signed is signed: no window to undo it in
    approval.refresh_from_db()
    assert first_break(approval) is None
    links = decision.links()
    decision.signature = decision.signature.replace("Ada", "Bob")
    assert decision.links() != links


@pytest.mark.parametrize(
    ("verdict", "meant"),
    [
        ("approve", "“I have read this, and I approve that it is done exactly so.”"),
        ("edit", "“I have read this, and I approve that it is done exactly so.”"),
        ("reject", "“I have read this, and I reject it.”"),
        ("respond", "“I have read this, and this is my answer.”"),
    ],
)
def test_it_means_what_was_decided_and_is_printed_in_the_zone_of_who_signed(ada, verdict, meant):
    """Whoever reads it, wherever; in winter Berlin's clock is an hour ahead, in summer two."""
    approval = ask(sign=True, verdicts=list(VERDICTS))
    with timezone.override("Europe/Berlin"):
        decision = approval.decide(by=ada, verdict=verdict, password="ada", **sent_with(verdict))
    berlin = decision.at.astimezone(ZoneInfo("Europe/Berlin"))
    assert printed(decision) == f"ada signed at {berlin:%H:%M:%S %Z on %Y-%m-%d}: {meant}"


def test_a_wrong_password_signs_nothing_and_is_in_the_trail(ada):
    approval = ask(sign=True)
    with pytest.raises(Invalid, match="not your password"):
        approval.decide(by=ada, verdict="approve", password="bob")
    assert answer_of(approval) is None
    assert told(approval) == ["opened", "refused by ada"]
    assert "bob" not in approval.activities.get(kind="refused").text


def test_after_five_wrong_ones_even_the_right_one_waits(ada, bob):
    """Over all approvals, for this person alone, for a quarter of an hour."""
    for _ in range(MOST_WRONG):
        with pytest.raises(Invalid):
            ask(sign=True).decide(by=ada, verdict="approve", password="guess")
    approval = ask(sign=True)
    with pytest.raises(NotAllowed, match="quarter of an hour"):
        approval.decide(by=ada, verdict="approve", password="ada")
    ask(sign=True).decide(by=bob, verdict="approve", password="bob")
    pass_time(15 * 60 + 1)
    approval.decide(by=ada, verdict="approve", password="ada")
    assert answer_of(approval)["outcome"] == "approved"


def test_what_needs_no_signature_has_none(ada):
    decision = ask().decide(by=ada, verdict="approve", password="wrong")
    assert (decision.signature, printed(decision)) == ("", "")
