"""Stages: in their order, each by other people, and as many as the payload on the table needs."""

from __future__ import annotations

import pytest

from approvals.chain import first_break
from approvals.models import Approval, Vote
from approvals.models.shown import shown
from runs.errors import Conflict, NotAllowed
from tests.approvals.cases import MAIL, answer_of, ask, told
from tests.at_once import at_once

pytestmark = pytest.mark.django_db

EDITED = {**MAIL, "copies": 8}


def stage(*names, quorum=1, needed=True):
    return {"name": names[0], "reviewers": names, "quorum": quorum, "when": None, "needed": needed}


@pytest.fixture
def staged():
    """Two of pm, then one of finance."""
    return ask(reviewers=(), stages=[stage("pm", quorum=2), stage("finance")])


@pytest.fixture
def fay(person):
    return person("fay", "finance")


@pytest.fixture
def both(person):
    return person("both", "pm", "finance")


def stands(approval):
    """(stage, quorum, voters) as they are now."""
    approval.refresh_from_db()
    voters = sorted(vote.by.username for vote in Vote.objects.filter(approval=approval))
    return approval.stage, approval.quorum, voters


def test_a_stage_decides_after_the_one_before(staged, ada, bob, fay):
    with pytest.raises(NotAllowed, match="turn of pm"):
        staged.decide(by=fay, verdict="approve")
    assert not Approval.objects.for_user(fay).exists()
    staged.decide(by=ada, verdict="approve", revision=1)
    staged.decide(by=bob, verdict="approve", revision=1)
    assert stands(staged) == (2, 1, ["ada", "bob"])
    assert (staged.revision, answer_of(staged)) == (2, None)
    assert Approval.objects.for_user(fay).get() == staged
    staged.decide(by=fay, verdict="approve", revision=2)
    assert answer_of(staged)["outcome"] == "approved"
    assert first_break(staged) is None


def test_who_looked_at_the_stage_before_is_told_who_ended_it(staged, ada, bob, both):
    staged.decide(by=ada, verdict="approve")
    staged.decide(by=bob, verdict="approve")
    with pytest.raises(Conflict, match="bob approved this"):
        staged.decide(by=both, verdict="approve", revision=1)


def test_each_stage_asks_other_people(staged, ada, both, fay):
    staged.decide(by=ada, verdict="approve")
    staged.decide(by=both, verdict="approve")
    with pytest.raises(NotAllowed, match="another stage"):
        staged.decide(by=both, verdict="approve")
    assert not Approval.objects.may_decide(both).exists()
    staged.decide(by=fay, verdict="approve")
    assert answer_of(staged)["outcome"] == "approved"


def test_one_rejection_ends_it_in_any_stage(staged, ada, bob, fay):
    staged.decide(by=ada, verdict="approve")
    staged.decide(by=bob, verdict="approve")
    staged.decide(by=fay, verdict="reject", reason="no money")
    assert answer_of(staged)["outcome"] == "rejected"


def test_an_edit_in_a_later_stage_goes_back_to_the_first_with_the_editors_vote_kept(staged, ada, bob, fay):
    """Earlier voters are asked again; the editor is not asked for what they wrote themselves."""
    staged.decide(by=ada, verdict="approve")
    staged.decide(by=bob, verdict="approve")
    staged.decide(by=fay, verdict="edit", payload=EDITED)
    assert stands(staged) == (1, 2, ["fay"])
    assert Approval.objects.for_user(ada).get() == staged
    staged.decide(by=ada, verdict="approve")
    assert answer_of(staged) is None
    staged.decide(by=bob, verdict="approve")
    answer = answer_of(staged)
    assert (answer["outcome"], answer["payload"]) == ("approved_with_edits", EDITED)


def test_a_vote_of_an_earlier_stage_can_be_taken_back_while_another_is_missing(staged, ada, bob, fay):
    staged.decide(by=ada, verdict="approve")
    staged.decide(by=bob, verdict="approve")
    revision = staged.revision
    staged.take_back(ada)
    assert stands(staged) == (1, 2, ["bob"])
    assert staged.revision == revision + 1
    with pytest.raises(NotAllowed):
        staged.decide(by=fay, verdict="approve")


def test_an_undone_conclusion_is_open_in_its_last_stage(staged, ada, bob, fay):
    for person in (ada, bob, fay):
        staged.decide(by=person, verdict="approve")
    staged.undo(fay)
    assert stands(staged) == (2, 1, ["ada", "bob"])
    assert answer_of(staged) is None
    assert told(staged)[-1] == "undone by fay"


def test_a_claim_ends_with_its_stage_and_with_ones_own_vote(staged, ada, bob, fay):
    staged.claim(ada)
    staged.decide(by=ada, verdict="approve")
    assert staged.assignee is None
    assert Approval.objects.mine(bob).get() == staged
    staged.claim(bob)
    staged.claim(bob)
    staged.decide(by=bob, verdict="approve")
    staged.refresh_from_db()
    assert staged.assignee is None
    assert Approval.objects.mine(fay).get() == staged


def test_the_list_counts_the_votes_of_the_stage_that_decides(staged, ada, bob):
    staged.decide(by=ada, verdict="approve")
    assert [row.votes_so_far for row in shown([staged.pk])] == [1]
    staged.decide(by=bob, verdict="approve")
    assert [row.votes_so_far for row in shown([staged.pk])] == [0]


def test_too_few_people_in_the_stage_that_decides_need_attention(ada, both):
    """A15: the only one of finance has voted as one of pm."""
    from runs.engine import clock

    approval = ask(reviewers=(), stages=[stage("pm"), stage("finance")])
    assert not Approval.objects.needs_attention(clock.now()).filter(due_at__isnull=False).exists()
    approval.decide(by=both, verdict="approve")
    assert approval.stage == 2
    assert Approval.objects.needs_attention(clock.now()).get() == approval


@pytest.mark.django_db(transaction=True)
def test_two_of_a_stage_at_the_same_moment_end_it_once(person):
    ada, bob = person("ada", "pm"), person("bob", "pm")
    for _ in range(5):
        approval = ask(reviewers=(), stages=[stage("pm", quorum=2), stage("finance")])
        ends = at_once(
            *(
                lambda one=one, approval=approval: Approval.objects.get(pk=approval.pk).decide(
                    by=one, verdict="approve", revision=1
                )
                for one in (ada, bob)
            )
        )
        assert not [end for end in ends if isinstance(end, Exception)]
        assert stands(approval) == (2, 1, ["ada", "bob"])
        assert approval.revision == 2
        assert first_break(approval) is None
