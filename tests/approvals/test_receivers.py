from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from approvals import who
from approvals.models import Activity, Approval
from runs.core import codec
from runs.core.errors import Permanent
from tests.approvals.cases import MAIL, ask, close, told

pytestmark = pytest.mark.django_db


def test_a_question_becomes_an_approval():
    approval = ask(
        reviewers=("pm", "ada", "pm"),
        due=timedelta(hours=8),
        exclude=["bob"],
        risk="high",
        quorum=2,
        question="Send \x00 it?",
        on_expiry="auto_approve",
    )
    assert (approval.title, approval.body) == ("Send \\x00 it?", "They **asked** for it.")
    assert (approval.graph, approval.risk, approval.quorum) == ("mailing", "high", 2)
    assert approval.reviewer_names == ["pm", "ada"]
    assert [row.name for row in approval.reviewers.filter(excluded=True)] == ["bob"]
    assert approval.due_at == approval.entry.due_at == approval.opened_at + timedelta(hours=8)
    assert (approval.on_expiry, approval.verdicts) == ("auto_approve", ["approve", "edit", "reject"])
    assert (approval.is_open, approval.revision, approval.payload) == (True, 1, MAIL)
    assert approval.proposal_digest == codec.digest(codec.dumps(MAIL))
    assert told(approval) == ["opened"]


def test_a_question_costs_few_statements(django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        ask()


def test_stages_are_kept_each_with_its_people():
    stages = [
        {"name": "team", "reviewers": ["pm"], "quorum": 2, "when": None, "needed": True},
        {"name": "money", "reviewers": ["finance", "ada"], "quorum": 1, "when": None, "needed": False},
    ]
    approval = ask(reviewers=(), stages=stages)
    assert (approval.stage, approval.quorum, approval.reviewer_names) == (1, 2, ["pm"])
    assert [row.name for row in approval.reviewers.filter(stage=2)] == ["finance", "ada"]


def test_the_first_stage_is_the_first_that_the_proposal_needs():
    stages = [
        {"name": "team", "reviewers": ["pm"], "quorum": 2, "when": None, "needed": False},
        {"name": "money", "reviewers": ["finance"], "quorum": 1, "when": None, "needed": True},
    ]
    approval = ask(reviewers=(), stages=stages)
    assert (approval.stage, approval.quorum, approval.reviewer_names) == (2, 1, ["finance"])


def test_a_rule_that_no_other_process_finds_is_refused_by_name():
    with pytest.raises(Permanent, match="Send the mail.*shop.rules:too_much"):
        ask(policy="shop.rules:too_much")
    assert not Approval.objects.exists()


def test_fixed_reviewers_are_the_members_as_they_are_when_it_is_asked(ada, bob, person, pm_group):
    """Whoever joins later is not asked, and whoever leaves still is; nobody comes into an empty group."""
    person("zoe").groups.create(name="empty")
    User.objects.get(username="zoe").groups.clear()
    User.objects.filter(pk=person("off", "pm").pk).update(is_active=False)
    approval = ask(reviewers=("pm", "empty"), fixed=True)
    User.objects.filter(username="off").update(is_active=True)
    late = person("late", "pm", "empty")
    ada.groups.remove(pm_group)
    assert {one.username for one in who.able(approval)} == {"ada", "bob"}
    assert "Only pm can decide" in who.why_not(approval, late)
    assert not Approval.objects.may_decide(late).exists()
    assert Approval.objects.may_decide(ada).get() == approval


def test_a_deadline_closes_the_approval(ada):
    approval = ask()
    close(approval, "rejected")
    approval.refresh_from_db()
    assert (approval.outcome, approval.conclusion, approval.revision) == ("rejected", None, 2)
    assert Activity.objects.get(kind="expired").text == "rejected"
    assert told(approval) == ["opened", "expired"]


def test_closing_it_again_leaves_one_row(ada):
    approval = ask()
    close(approval, "expired")
    close(approval, "cancelled")
    approval.refresh_from_db()
    assert approval.outcome == "expired"
    assert told(approval) == ["opened", "expired"]
