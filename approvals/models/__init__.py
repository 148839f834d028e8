"""Rows about what people decide, and every verb on them."""

from approvals.models.absence import Absence
from approvals.models.activity import Activity
from approvals.models.approval import Approval
from approvals.models.attachment import Attachment
from approvals.models.decision import Decision
from approvals.models.draft import KeptDraft
from approvals.models.notice import Notice, NoticeWish, Occasion
from approvals.models.reviewer import Reviewer, Vote
from approvals.models.saved import SavedFilter
from approvals.models.target import Target

__all__ = [
    "Absence",
    "Activity",
    "Approval",
    "Attachment",
    "Decision",
    "KeptDraft",
    "Notice",
    "NoticeWish",
    "Occasion",
    "Reviewer",
    "SavedFilter",
    "Target",
    "Vote",
]
