"""The closed sets of words about approvals, each in one place."""

from __future__ import annotations

APPROVE, EDIT, REJECT, RESPOND = "approve", "edit", "reject", "respond"
VERDICTS = (APPROVE, EDIT, REJECT, RESPOND)

APPROVED = "approved"
APPROVED_WITH_EDITS = "approved_with_edits"
REJECTED = "rejected"
RESPONDED = "responded"
BY_PEOPLE = (APPROVED, APPROVED_WITH_EDITS, REJECTED, RESPONDED)

EXPIRED = "expired"
AUTO_APPROVED = "auto_approved"
SUPERSEDED = "superseded"
CANCELLED = "cancelled"
# `rejected` is in both: people reject, and so does a deadline whose author asked for it
BY_THE_ENGINE = (EXPIRED, REJECTED, AUTO_APPROVED, SUPERSEDED, CANCELLED)
BY_DEADLINE = (EXPIRED, REJECTED, AUTO_APPROVED)
OUTCOMES = tuple(dict.fromkeys(BY_PEOPLE + BY_THE_ENGINE))

RISKS = ("low", "medium", "high")
EXPIRIES = ("expired", "rejected", "auto_approve")

# What a person came through; chat and links come to the page.
VIAS = ("page", "api", "command", "admin", "bulk")

OPENED, COMMENTED, CLAIMED, RELEASED, ASSIGNED = "opened", "commented", "claimed", "released", "assigned"
DELEGATED, RECALLED = "delegated", "recalled"
REMINDED, ESCALATED, EXTENDED = "reminded", "escalated", "extended"
UNDONE, TAKEN_BACK, LATE, REFUSED, CLOSED = "undone", "taken_back", "late", "refused", "closed"
ACTIVITIES = (
    OPENED,
    COMMENTED,
    CLAIMED,
    RELEASED,
    ASSIGNED,
    DELEGATED,
    RECALLED,
    REMINDED,
    ESCALATED,
    EXTENDED,
    UNDONE,
    TAKEN_BACK,
    LATE,
    REFUSED,
    EXPIRED,
    CLOSED,
)

DID = {
    APPROVE: "approved this",
    EDIT: "approved this with edits",
    REJECT: "rejected this",
    RESPOND: "answered this",
    OPENED: "opened this",
    COMMENTED: "commented",
    CLAIMED: "claimed this",
    RELEASED: "released this",
    ASSIGNED: "assigned this",
    DELEGATED: "gave their part to somebody else",
    RECALLED: "took their part back",
    REMINDED: "reminded",
    ESCALATED: "asked further people",
    EXTENDED: "moved the deadline",
    UNDONE: "undid the decision",
    TAKEN_BACK: "took back a vote",
    EXPIRED: "let this expire",
    CLOSED: "closed this",
}
