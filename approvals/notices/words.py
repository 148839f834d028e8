"""The closed sets of words about notices."""

from __future__ import annotations

ASKED, REMINDED, ESCALATED, ASSIGNED = "asked", "reminded", "escalated", "assigned"
DECIDED, EXPIRED, CLOSED, REOPENED = "decided", "expired", "closed", "reopened"
MENTIONED = "mentioned"
OCCASIONS = (ASKED, REMINDED, ESCALATED, ASSIGNED, DECIDED, EXPIRED, CLOSED, REOPENED, MENTIONED)
WHILE_OPEN = (ASKED, REMINDED, ESCALATED, ASSIGNED)  # nothing of these is sent once it is decided
FOR_PEOPLE = (
    ASKED,
    REMINDED,
    ESCALATED,
    ASSIGNED,
    MENTIONED,
    DECIDED,
    EXPIRED,
)  # what a person may want, or not

MAIL, CHAT, WEBHOOK = "mail", "chat", "webhook"
CHANNELS = (MAIL, CHAT, WEBHOOK)
TARGETS = (CHAT, WEBHOOK)

WAITING, SENT, FAILED, DROPPED = "waiting", "sent", "failed", "dropped"
BUNDLED = "bundled"  # goes with another one, in one mail
STATUSES = (WAITING, SENT, FAILED, DROPPED, BUNDLED)

DECIDED_MEANWHILE = "decided"  # why one was dropped that is wanted again once the decision is undone
