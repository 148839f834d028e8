"""A row of the inbox as the list prints it. Its words are made here, so that the template has only to print them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from approvals.models.inbox import TODAY
from runs.pages import moments
from runs.pages.words import person_name
from runs.templatetags.look import avatar, status

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.utils.safestring import SafeString

    from approvals.filters import Filter
    from approvals.models import Approval

_ANY = str(uuid.UUID(int=0))  # one address is made, and is that of each row with its id


@dataclass(frozen=True, slots=True)
class Listed:
    """`pick`: what its box sends; "" of a closed one. `outcome`: of one that was decided under the reader's eyes.

    `about` is the graph, the run, and for whom it works. `age`, `status`, `due` and `holder` are drawn; the last three
    are "" where there is nothing to show.
    """

    key: str
    address: str
    title: str
    pick: str
    pick_words: str
    outcome: str
    age: SafeString
    about: str
    status: str
    due: str
    is_late: bool
    risk: str
    risk_words: str
    votes: str
    holder: str


class Writer:
    """Writes rows for one reader at one moment: what they have in common is asked once."""

    def __init__(self, reader: User, now: datetime, filter: Filter) -> None:
        self._reader, self._now = reader, now
        self._address = reverse("approvals:approval", args=[_ANY]) + filter.query
        self._is_decided = filter.scope == "decided"
        self._risks = {"high": _("High risk"), "medium": _("Medium risk"), "low": _("Low risk")}
        self._select, self._for = _("Select: %(title)s"), _("for %(who)s")
        self._late, self._due = _("late"), _("due")
        self._statuses: dict[str, str] = {}

    def written(self, row: Approval, group: str) -> Listed:
        """`group`: that of the list in which the row stands."""
        is_open, requester = row.is_open, row.run.on_behalf_of or row.run.created_by
        asked_by = f" · {self._for % {'who': person_name(requester)}}" if requester is not None else ""
        many = {"votes": row.votes_so_far, "quorum": row.quorum}
        return Listed(
            key=str(row.pk),
            address=self._address.replace(_ANY, str(row.pk)),
            title=row.title,
            pick=f"{row.pk.hex}.{row.revision}" if is_open else "",
            pick_words=self._select % {"title": row.title},
            outcome="" if self._is_decided else row.outcome,
            age=self._ago(row.opened_at if is_open else row.decided_at, end=True),
            about=f"{row.graph} {row.run.short_id}{asked_by}",
            status="" if is_open else self._status(row.outcome),
            due=self._deadline(row.due_at, group) if is_open and row.due_at is not None else "",
            is_late=row.due_at is not None and row.due_at <= self._now,
            risk=row.risk,
            risk_words=self._risks[row.risk],
            votes=_("%(votes)s of %(quorum)s") % many if row.quorum > 1 else "",
            holder=self._holder(row.assignee) if is_open and row.assignee is not None else "",
        )

    def _ago(self, moment: datetime, *, end: bool = False) -> SafeString:
        return moments.ago(moment, self._now, bare=True, end=end, focus=False)

    def _deadline(self, due_at: datetime, group: str) -> SafeString:
        if due_at <= self._now:
            return format_html("{} {}", self._ago(due_at), self._late)
        form = "H:i" if group == TODAY else "D j M, H:i"
        return format_html("{} {}", self._due, moments.on_clock(due_at, form, focus=False))

    def _status(self, outcome: str) -> str:
        if outcome not in self._statuses:
            self._statuses[outcome] = render_to_string("shared/_status.html", status(outcome))
        return self._statuses[outcome]

    def _holder(self, person: User) -> SafeString:
        own = person.pk == self._reader.pk
        return avatar(
            person,
            label=_("Claimed by you") if own else _("Claimed by %(who)s") % {"who": person_name(person)},
        )
