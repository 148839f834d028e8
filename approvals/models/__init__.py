"""Rows about what people decide, and every verb on them."""

from approvals.models.activity import Activity
from approvals.models.approval import Approval
from approvals.models.decision import Decision
from approvals.models.reviewer import Reviewer, Vote

__all__ = ["Activity", "Approval", "Decision", "Reviewer", "Vote"]
