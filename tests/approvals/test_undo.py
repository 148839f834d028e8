from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.models import Approval
from runs.engine import clock
from runs.errors import Conflict, NotAllowed
from runs.models import LedgerEntry, Run
from tests.approvals.cases import MAIL, answer_of, ask, close, told

pytestmark = pytest.mark.django_db


def test_who_decided_can_undo_it(ada):
    approval = ask()
    approval.decide(by=ada, verdict="edit", payload={**MAIL, "copies": 8})
    approval.undo(ada)
    assert answer_of(approval) is None
    assert (approval.outcome, approval.decided_at, approval.conclusion) == ("", None, None)
    assert (approval.payload, approval.revision) == (MAIL, 3)
    assert told(approval) == ["opened", "edit by ada", "undone by ada"]


def test_what_was_undone_can_be_decided_anew_by_anyone(ada, bob):
    approval = ask()
    approval.decide(by=ada, verdict="reject", reason="no")
    approval.undo(ada)
    assert Approval.objects.for_user(ada).get() == Approval.objects.for_user(bob).get() == approval
    approval.decide(by=bob, verdict="approve")
    assert answer_of(approval)["by"] == "bob"


def test_an_undone_vote_leaves_the_others(ada, bob):
    approval = ask(quorum=2)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="approve")
    approval.undo(bob)
    assert [vote.by for vote in approval.votes.all()] == [ada]
    approval.decide(by=bob, verdict="approve")
    assert answer_of(approval)["outcome"] == "approved"


def test_only_who_decided_can_undo_it(ada, bob):
    approval = ask()
    approval.decide(by=ada, verdict="approve")
    with pytest.raises(NotAllowed, match="Only ada"):
        approval.undo(bob)
    assert answer_of(approval)["outcome"] == "approved"
    assert told(approval) == ["opened", "approve by ada"]


def test_what_the_run_has_taken_cannot_be_undone(ada):
    approval = ask()
    approval.decide(by=ada, verdict="approve")
    LedgerEntry.objects.filter(pk=approval.entry_id).update(taken_at=clock.now())
    with pytest.raises(Conflict):
        approval.undo(ada)
    approval.refresh_from_db()
    assert (approval.outcome, approval.conclusion.by) == ("approved", ada)
    assert told(approval) == ["opened", "approve by ada"]


def test_what_no_person_decided_cannot_be_undone(ada):
    approval = ask()
    with pytest.raises(Conflict, match="nothing to undo"):
        approval.undo(ada)
    close(approval, "expired")
    with pytest.raises(Conflict, match="No person decided"):
        approval.undo(ada)


def test_undone_after_its_deadline_it_expires_at_once(ada):
    approval = ask(due=timedelta(hours=1))
    approval.decide(by=ada, verdict="approve")
    LedgerEntry.objects.filter(pk=approval.entry_id).update(due_at=clock.now() - timedelta(seconds=1))
    approval.undo(ada)
    assert approval.outcome == "expired"
    assert told(approval) == ["opened", "approve by ada", "undone by ada", "expired"]


def test_an_undo_counts_as_an_answer(ada):
    """P4, S13: a worker that was about to park the run looks again."""
    approval = ask()
    approval.decide(by=ada, verdict="approve")
    before = Run.objects.get(pk=approval.run_id).answers
    approval.undo(ada)
    assert Run.objects.get(pk=approval.run_id).answers == before + 1


def test_the_operation_that_was_undone_is_not_done_again(ada):
    """A page that sends its request twice does not decide after the undo."""
    approval = ask()
    first = approval.decide(by=ada, verdict="approve", operation_id="op")
    approval.undo(ada)
    assert approval.decide(by=ada, verdict="approve", operation_id="op") == first
    assert answer_of(approval) is None
