"""What a notice says. The payload stands in it only where the author allows it; the question always does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # payloads are any JSON
from zoneinfo import ZoneInfo

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.forms.values import json_text, visible
from approvals.notices import bundling, words
from runs.engine import clock
from runs.pages.words import dated, person_name

if TYPE_CHECKING:
    from approvals.models import Approval, Notice

LONGEST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Wording:
    """`facts` are pairs of a name and what it is; `payload` is JSON text, "" where it stays here."""

    subject: str
    lead: str
    facts: list[tuple[str, str]]
    link: str
    act: str
    payload: str
    wishes_link: str


def wording(notice: Notice) -> Wording:
    approval, asks = notice.approval, notice.occasion in words.WHILE_OPEN
    title = " ".join(visible(approval.title).split())
    return Wording(
        subject=_shortened(f"{_what(notice)}: {title}"),
        lead=_lead(notice),
        facts=_facts(approval, asks) + _despite_quiet(notice),
        link=f"{site()}{approval.get_absolute_url()}",
        act=_("Open and decide") if asks else _("Open it"),
        payload=visible(json_text(approval.payload)) if asks and tells_payload(approval) else "",
        wishes_link=f"{site()}{reverse('approvals:notices')}",
    )


@dataclass(frozen=True, slots=True)
class Digest:
    """Several notices in one mail."""

    subject: str
    lead: str
    parts: list[Wording]
    link: str
    wishes_link: str


def digest(notice: Notice) -> Digest:
    """Of all its parts: what was held while it was quiet."""
    parts = [wording(part) for part in notice.parts]
    first = parts[0].subject
    if all(part.occasion == words.ASSIGNED for part in notice.parts):
        lead = _("This is given to you to decide.")
        many = ngettext("%(count)s approval for you", "%(count)s approvals for you", len(parts))
    else:
        lead = _("This was held until your quiet hours ended.")
        many = ngettext(
            "%(count)s notice from your quiet hours", "%(count)s notices from your quiet hours", len(parts)
        )
    return Digest(
        subject=_shortened(f"{many % {'count': len(parts)}}: {first}"),
        lead=lead,
        parts=parts,
        link=f"{site()}{reverse('approvals:inbox')}",
        wishes_link=parts[0].wishes_link,
    )


def event(notice: Notice) -> dict[str, Any]:
    """What a webhook is told, as standard-webhooks has it."""
    approval = notice.approval
    told: dict[str, Any] = {
        "approval": str(approval.pk),
        "run": str(approval.run_id),
        "graph": approval.graph,
        "title": visible(approval.title),
        "risk": approval.risk,
        "opened_at": approval.opened_at.isoformat(),
        "due_at": approval.due_at.isoformat() if approval.due_at else None,
        "reviewers": approval.reviewer_names,
        "assignee": approval.assignee.get_username() if approval.assignee is not None else None,
        "outcome": approval.outcome or None,
        "revision": approval.revision,
        "url": f"{site()}{approval.get_absolute_url()}",
    }
    if tells_payload(approval):
        told["payload"] = approval.payload
    return {"type": f"approval.{notice.occasion}", "timestamp": notice.made_at.isoformat(), "data": told}


def tells_payload(approval: Approval) -> bool:
    """The author's word: Ask(tell=True)."""
    return bool(approval.request.get("tell"))


def site() -> str:
    return settings.DURABLEWEB["site_url"]


def _what(notice: Notice) -> str:
    return {
        words.ASKED: _("For you to decide"),
        words.REMINDED: _("Reminder"),
        words.ESCALATED: _("Nobody has decided yet"),
        words.ASSIGNED: _("Given to you"),
        words.DECIDED: _outcome(notice.approval),
        words.EXPIRED: _outcome(notice.approval),
        words.CLOSED: _outcome(notice.approval),
        words.REOPENED: _("Open again"),
        words.MENTIONED: _("You are mentioned"),
    }[notice.occasion]


def _lead(notice: Notice) -> str:
    approval = notice.approval
    if notice.occasion == words.REMINDED and approval.due_at:
        return _("It is still open, and the deadline is near.")
    return {
        words.ASKED: _("A run waits for your decision."),
        words.REMINDED: _("It is still open."),
        words.ESCALATED: _("Nobody has decided in the time that its author gave, so you are asked as well."),
        words.ASSIGNED: _("Somebody has handed this to you."),
        words.DECIDED: _("What your run asked has been decided; it goes on."),
        words.EXPIRED: _("Nobody decided in time."),
        words.CLOSED: _("It no longer needs a decision."),
        words.REOPENED: _("The decision was undone; it is open again."),
        words.MENTIONED: _("Somebody has mentioned you in a comment."),
    }[notice.occasion]


def _facts(approval: Approval, asks: bool) -> list[tuple[str, str]]:
    run = approval.run
    facts = [(_("Asked by"), f"{approval.graph} · {run.short_id}")]
    if run.created_by is not None:
        facts.append((_("Started by"), person_name(run.created_by)))
    if asks and approval.due_at is not None:
        due = timezone.localtime(approval.due_at)
        facts.append((_("Decide by"), f"{dated(due, 'D j M Y, H:i')} {due.tzname()}"))
    if approval.risk != "low":
        facts.append((_("Risk"), {"medium": _("medium"), "high": _("high")}[approval.risk]))
    if not asks and approval.conclusion is not None:
        facts.append((_("Decided by"), person_name(approval.conclusion.by)))
    return facts


def _despite_quiet(notice: Notice) -> list[tuple[str, str]]:
    """Why it comes in quiet hours."""
    end = bundling.quiet_until(notice, clock.now()) if notice.person is not None else None
    if end is None or not bundling.is_urgent(notice, end):
        return []
    until = end.astimezone(ZoneInfo(notice.person.notice_wish.zone))
    said = _("The deadline is before your quiet hours end at %(at)s, so this did not wait.")
    return [(_("Sent now"), said % {"at": f"{dated(until, 'H:i')} {until.tzname()}"})]


def _outcome(approval: Approval) -> str:
    return {
        "approved": _("Approved"),
        "approved_with_edits": _("Approved with edits"),
        "rejected": _("Rejected"),
        "responded": _("Answered"),
        "expired": _("Expired"),
        "auto_approved": _("Approved, for nobody objected in time"),
        "superseded": _("Asked anew"),
        "cancelled": _("Cancelled"),
    }.get(approval.outcome, _("Closed"))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SUBJECT else f"{text[: LONGEST_SUBJECT - 1]}…"
