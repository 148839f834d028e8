"""A part in an approval moves to somebody else and back; it is one vote, and the trail says for whom it was given."""

from __future__ import annotations

import pytest

from approvals.chain import first_break, trail
from approvals.history import notes
from approvals.models import Approval
from runs.errors import Conflict, Invalid, Missing, NotAllowed
from runs.models import LedgerEntry
from tests.approvals.cases import answer_of, ask, told, waiting_run
from tests.at_once import at_once

pytestmark = pytest.mark.django_db


def test_who_stands_in_decides_for_the_other_and_the_trail_says_so(ada, eve):
    approval = ask()
    assert not Approval.objects.visible_to(eve).exists()
    approval.delegate(ada, to=eve, revision=1)
    assert (approval.revision, told(approval)[-1]) == (2, "delegated by ada")
    assert Approval.objects.mine(eve).get() == approval
    assert not Approval.objects.mine(ada).exists()
    with pytest.raises(NotAllowed, match="gave your part in this to eve"):
        approval.decide(by=ada, verdict="approve")
    decision = approval.decide(by=eve, verdict="approve")
    assert (decision.by, decision.instead_of) == (eve, ada)
    assert answer_of(approval)["by"] == "eve"
    assert LedgerEntry.objects.get(pk=approval.entry_id).answered_by == "eve for ada"
    approval.refresh_from_db()
    assert first_break(approval) is None
    with pytest.raises(Conflict, match="eve for ada approved this"):
        approval.decide(by=eve, verdict="reject", reason="x")


def test_for_whom_it_was_said_is_under_the_digest(ada, bob, eve):
    approval = ask()
    approval.delegate(ada, to=eve)
    decision = approval.decide(by=eve, verdict="approve")
    approval.refresh_from_db()
    row = next(row for row in trail(approval) if row.pk == decision.pk and hasattr(row, "verdict"))
    links = row.links()
    row.instead_of = bob
    assert row.links() != links
    row.instead_of = None
    assert row.links() != links


def test_a_part_is_one_vote_of_a_quorum(ada, bob, eve):
    approval = ask(quorum=2)
    approval.delegate(ada, to=eve)
    approval.decide(by=eve, verdict="approve")
    assert answer_of(approval) is None
    with pytest.raises(NotAllowed):
        approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="approve")
    assert answer_of(approval)["outcome"] == "approved"


def test_what_was_given_can_be_taken_back_until_it_is_used(ada, bob, eve):
    approval = ask(quorum=2)
    approval.delegate(ada, to=eve)
    approval.recall(ada)
    with pytest.raises(Missing):
        approval.decide(by=eve, verdict="approve")
    with pytest.raises(Conflict, match="not given"):
        approval.recall(ada)
    approval.delegate(ada, to=eve)
    approval.decide(by=eve, verdict="approve")
    with pytest.raises(Conflict, match="eve has voted for you"):
        approval.recall(ada)
    approval.take_back(eve)
    approval.recall(ada)
    approval.decide(by=ada, verdict="approve")
    assert told(approval)[1:] == [
        "delegated by ada",
        "recalled by ada",
        "delegated by ada",
        "approve by eve",
        "taken_back by eve",
        "recalled by ada",
        "approve by ada",
    ]


def test_the_activity_says_whose_part_it_was_to_each_reader(ada, bob, eve):
    approval = ask()
    approval.delegate(ada, to=eve)
    approval.recall(ada)
    rows = [row for row in trail(approval) if getattr(row, "kind", "") in ("delegated", "recalled")]
    assert [note.text for note in notes(approval, rows, ada)] == [
        "You gave your part to eve",
        "You took your part back from eve",
    ]
    assert [note.text for note in notes(approval, rows, bob)] == [
        "ada gave their part to eve",
        "ada took their part back from eve",
    ]


def test_an_open_item_that_one_has_claimed_moves_too(ada, eve):
    approval = ask()
    approval.claim(ada)
    approval.delegate(ada, to=eve)
    assert approval.assignee == eve
    approval.recall(ada)
    assert approval.assignee is None


@pytest.mark.parametrize(
    ("to", "why"),
    [("bob", "may decide this already"), ("ada", "may decide this already"), ("rob", "may not decide this")],
)
def test_a_part_goes_to_who_has_none_and_may_have_one(ada, bob, person, to, why):
    """A4: not to the requester, and not to who has one already; two votes of one person would be no two people."""
    rob = person("rob")
    approval = ask(run=waiting_run(created_by=rob))
    with pytest.raises(Invalid, match=why) as refused:
        approval.delegate(ada, to={"ada": ada, "bob": bob, "rob": rob}[to])
    assert list(refused.value.fields) == ["to"]


def test_who_is_excluded_gets_no_part(ada, eve):
    approval = ask(exclude=["eve"])
    with pytest.raises(Invalid, match="may not decide"):
        approval.delegate(ada, to=eve)


def test_a_part_that_was_given_is_not_given_on(ada, eve, person):
    approval = ask()
    approval.delegate(ada, to=eve)
    with pytest.raises(NotAllowed, match="stand in for ada"):
        approval.delegate(eve, to=person("zoe"))


def test_who_has_given_theirs_away_cannot_hold_another(ada, bob, eve):
    approval = ask()
    approval.delegate(ada, to=eve)
    with pytest.raises(Invalid, match="given their own part away"):
        approval.delegate(bob, to=ada)


def test_who_has_voted_has_nothing_to_give(ada, eve):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    with pytest.raises(Conflict, match="You have voted"):
        approval.delegate(ada, to=eve)


def test_a_part_ends_when_its_givers_account_is_switched_off(ada, eve):
    approval = ask()
    approval.delegate(ada, to=eve)
    ada.is_active = False
    ada.save()
    with pytest.raises(NotAllowed):
        Approval.objects.get(pk=approval.pk).decide(by=eve, verdict="approve")
    assert not Approval.objects.mine(eve).exists()


def test_a_revision_that_is_old_is_refused(ada, bob, eve):
    """A8"""
    approval = ask()
    approval.delegate(ada, to=eve)
    with pytest.raises(Conflict, match="ada gave their part to eve"):
        approval.decide(by=bob, verdict="approve", revision=1)


@pytest.mark.django_db(transaction=True)
def test_a_part_taken_back_in_the_moment_it_is_used_is_used_or_taken_back(person):
    ada, eve = person("ada", "pm"), person("eve")
    for _ in range(5):
        approval = ask()
        approval.delegate(ada, to=eve)

        def fresh(approval=approval):
            return Approval.objects.get(pk=approval.pk)

        decided, recalled = at_once(
            lambda fresh=fresh: fresh().decide(by=eve, verdict="approve"),
            lambda fresh=fresh: fresh().recall(ada),
        )
        if recalled is None:
            assert isinstance(decided, Missing | NotAllowed), decided
            assert answer_of(approval) is None
        else:
            assert isinstance(recalled, Conflict), recalled
            assert answer_of(approval)["by"] == "eve"
        assert first_break(fresh()) is None
