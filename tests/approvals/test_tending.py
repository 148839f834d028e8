from __future__ import annotations

import pytest

from approvals.models import Activity
from runs.errors import Conflict, Invalid, NotAllowed
from tests.approvals.cases import ask, close, told, waiting_run

pytestmark = pytest.mark.django_db


def test_a_claim_shows_who_is_at_it(ada, bob):
    approval = ask()
    approval.claim(ada)
    approval.claim(ada)
    assert (approval.assignee, approval.revision) == (ada, 2)
    with pytest.raises(Conflict, match="ada has this"):
        approval.claim(bob)
    with pytest.raises(NotAllowed, match="Only ada"):
        approval.release(bob)
    approval.release(ada)
    assert (approval.assignee, approval.revision) == (None, 3)
    with pytest.raises(Conflict, match="Nobody has this"):
        approval.release(ada)
    assert told(approval) == ["opened", "claimed by ada", "released by ada"]


def test_it_is_assigned_only_to_who_may_decide_it(ada, bob, eve):
    approval = ask()
    with pytest.raises(Invalid, match="eve may not decide") as refused:
        approval.assign(by=ada, to=eve)
    assert list(refused.value.fields) == ["to"]
    approval.assign(by=ada, to=bob)
    approval.assign(by=ada, to=bob)
    assert approval.assignee == bob
    assert Activity.objects.get(kind="assigned").to == bob
    assert told(approval) == ["opened", "assigned by ada"]


def test_who_may_not_decide_may_neither_claim_nor_assign(ada, bob):
    approval = ask(run=waiting_run(created_by=ada))
    for act in (lambda: approval.claim(ada), lambda: approval.assign(by=ada, to=bob)):
        with pytest.raises(NotAllowed, match="four eyes"):
            act()


def test_what_is_closed_is_not_claimed_but_can_be_commented(ada):
    approval = ask()
    close(approval, "superseded")
    for act in (
        lambda: approval.claim(ada),
        lambda: approval.assign(by=ada, to=ada),
        lambda: approval.release(ada),
    ):
        with pytest.raises(Conflict, match="superseded"):
            act()
    approval.comment(ada, "Too bad.")
    assert told(approval) == ["opened", "closed", "commented by ada"]


def test_the_requester_may_comment(ada):
    approval = ask(run=waiting_run(created_by=ada))
    said = approval.comment(ada, "Please look at the second paragraph.\n")
    assert (said.by, said.text) == (ada, "Please look at the second paragraph.\n")


@pytest.mark.parametrize("text", ["", " \n", "x" * 20_001, None, 7])
def test_a_comment_is_a_text(ada, text):
    with pytest.raises(Invalid):
        ask().comment(ada, text)


def test_an_older_revision_is_refused(ada, bob):
    """A8"""
    approval = ask()
    approval.claim(bob, revision=1)
    for act in (lambda: approval.claim(ada, revision=1), lambda: approval.assign(by=ada, to=ada, revision=1)):
        with pytest.raises(Conflict, match="bob claimed this"):
            act()
