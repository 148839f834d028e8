"""Signed decisions: the password again, and what the signature means kept in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.chain import first_break
from approvals.models import Decision
from approvals.signing import MOST_WRONG, printed
from runs.engine import clock
from runs.errors import Invalid, NotAllowed
from runs.models import LedgerEntry
from tests.approvals.cases import answer_of, ask, told
from tests.runs.driving import pass_time

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("via", ["page", "api", "command", "admin", "bulk"])
def test_nothing_is_decided_without_the_password_whatever_way_it_comes(ada, via, verdict):
    approval = ask(sign=True)
    with pytest.raises(Invalid, match="signature") as refused:
        approval.decide(by=ada, verdict=verdict, reason="x", via=via)
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
