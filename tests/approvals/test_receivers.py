from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.models import Activity, Approval
from runs.core import codec
from runs.errors import Invalid
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
    assert (approval.reviewer_names, approval.excluded_names) == (["pm", "ada"], ["bob"])
    assert approval.due_at == approval.entry.due_at == approval.opened_at + timedelta(hours=8)
    assert (approval.on_expiry, approval.verdicts) == ("auto_approve", ["approve", "edit", "reject"])
    assert (approval.is_open, approval.revision, approval.payload) == (True, 1, MAIL)
    assert approval.proposal_digest == codec.digest(codec.dumps(MAIL))
    assert told(approval) == ["opened"]


def test_a_question_costs_few_statements(django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        ask()


def test_stages_are_refused_by_name():
    with pytest.raises(Invalid, match="Send the mail"):
        ask(stages=[["pm"], ["ops"]])
    assert not Approval.objects.exists()


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
