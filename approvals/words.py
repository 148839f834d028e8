"""The closed sets of words about approvals, each in one place."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

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
ATTACHED = "attached"
DELEGATED, RECALLED = "delegated", "recalled"
REMINDED, ESCALATED, EXTENDED = "reminded", "escalated", "extended"
UNDONE, TAKEN_BACK, LATE, REFUSED, CLOSED = "undone", "taken_back", "late", "refused", "closed"
ACTIVITIES = (
    OPENED,
    COMMENTED,
    ATTACHED,
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
    APPROVE: _("%(who)s approved this"),
    EDIT: _("%(who)s approved this with edits"),
    REJECT: _("%(who)s rejected this"),
    RESPOND: _("%(who)s answered this"),
    OPENED: _("%(who)s opened this"),
    COMMENTED: _("%(who)s commented"),
    ATTACHED: _("%(who)s attached a file"),
    CLAIMED: _("%(who)s claimed this"),
    RELEASED: _("%(who)s released this"),
    ASSIGNED: _("%(who)s assigned this"),
    DELEGATED: _("%(who)s gave their part to somebody else"),
    RECALLED: _("%(who)s took their part back"),
    REMINDED: _("%(who)s reminded"),
    ESCALATED: _("%(who)s asked further people"),
    EXTENDED: _("%(who)s moved the deadline"),
    UNDONE: _("%(who)s undid the decision"),
    TAKEN_BACK: _("%(who)s took back a vote"),
    EXPIRED: _("%(who)s let this expire"),
    CLOSED: _("%(who)s closed this"),
}
