from __future__ import annotations

import pytest

from approvals.models import Approval, Vote
from runs.errors import Conflict, NotAllowed
from tests.approvals.cases import MAIL, answer_of, ask, told

pytestmark = pytest.mark.django_db

EDITED = {**MAIL, "copies": 8}


@pytest.fixture
def cleo(person):
    return person("cleo", "pm")


def votes(approval):
    return sorted(vote.by.username for vote in Vote.objects.filter(approval=approval))


def test_the_run_waits_for_all_of_the_quorum(ada, bob, cleo):
    approval = ask(quorum=3)
    for person in (ada, bob):
        approval.decide(by=person, verdict="approve", revision=1)
        assert answer_of(approval) is None
    assert votes(approval) == ["ada", "bob"]
    approval.decide(by=cleo, verdict="approve", revision=1)
    assert answer_of(approval)["outcome"] == "approved"
    approval.refresh_from_db()
    assert (approval.outcome, approval.revision) == ("approved", 2)


def test_a_person_votes_once(ada):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    with pytest.raises(Conflict, match="votes once"):
        approval.decide(by=ada, verdict="approve")
    assert votes(approval) == ["ada"]


def test_one_rejection_ends_it(ada, bob):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="reject", reason="no")
    assert answer_of(approval)["outcome"] == "rejected"


def test_an_edit_starts_the_count_anew(ada, bob, cleo):
    """Ada's vote was for another payload: she is asked again, and two who agree on the edit are enough."""
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="edit", payload=EDITED)
    assert votes(approval) == ["bob"]
    assert answer_of(approval) is None
    assert (approval.payload, approval.revision) == (EDITED, 2)
    with pytest.raises(Conflict, match="bob approved this with edits"):
        approval.decide(by=cleo, verdict="approve", revision=1)
    assert Approval.objects.for_user(ada).get() == approval
    approval.decide(by=ada, verdict="approve", revision=2)
    answer = answer_of(approval)
    assert (answer["outcome"], answer["verdict"], answer["payload"]) == (
        "approved_with_edits",
        "edit",
        EDITED,
    )


def test_the_same_edit_by_another_is_a_vote_for_it(ada, bob):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="edit", payload=EDITED)
    approval.decide(by=bob, verdict="edit", payload=EDITED)
    assert answer_of(approval)["payload"] == EDITED


def test_the_same_answer_by_another_is_a_vote_for_it(ada, bob):
    approval = ask(None, quorum=2, verdicts=["respond"])
    approval.decide(by=ada, verdict="respond", payload="Friday")
    assert answer_of(approval) is None
    approval.decide(by=bob, verdict="respond", payload="Friday")
    assert (answer_of(approval)["outcome"], answer_of(approval)["payload"]) == ("responded", "Friday")


def test_an_edit_back_to_the_proposal_is_approved_without_edits(ada, bob, cleo):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="edit", payload=EDITED)
    approval.decide(by=bob, verdict="edit", payload=MAIL)
    assert answer_of(approval) is None
    approval.decide(by=cleo, verdict="approve")
    assert answer_of(approval)["outcome"] == "approved"


def test_a_vote_can_be_taken_back_while_others_are_missing(ada, bob, cleo):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    assert not Approval.objects.for_user(ada).exists()
    approval.take_back(ada)
    assert Approval.objects.for_user(ada).get() == approval
    approval.decide(by=bob, verdict="approve")
    assert answer_of(approval) is None
    approval.decide(by=cleo, verdict="approve")
    assert told(approval) == [
        "opened",
        "approve by ada",
        "taken_back by ada",
        "approve by bob",
        "approve by cleo",
    ]
    with pytest.raises(Conflict, match="cleo approved"):
        approval.take_back(bob)


def test_taking_back_an_edit_puts_what_was_there_on_the_table_again(ada, bob, cleo):
    approval = ask(quorum=3)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="edit", payload=EDITED)
    approval.decide(by=cleo, verdict="approve")
    approval.take_back(bob)
    assert approval.payload == MAIL
    assert votes(approval) == ["ada"]
    assert approval.revision == 3


def test_who_has_no_vote_cannot_take_one_back(ada, bob):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    with pytest.raises(Conflict, match="no vote"):
        approval.take_back(bob)


def test_a_vote_that_is_not_the_last_leaves_the_revision(ada, bob, cleo):
    """Two of three may press in the same second."""
    approval = ask(quorum=3)
    approval.decide(by=ada, verdict="approve", revision=1)
    approval.decide(by=bob, verdict="approve", revision=1)
    assert approval.revision == 1


def test_the_requesters_vote_does_not_count(ada, bob):
    approval = ask(quorum=2)
    approval.run.created_by = ada
    approval.run.save()
    with pytest.raises(NotAllowed):
        approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="approve")
    assert votes(approval) == ["bob"]
