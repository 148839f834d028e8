"""A row of the inbox as the list prints it.

Written in Python and not by a template: a page has fifty of them, with some thirty places each, and the places alone
took a third of the time in which the page was made.
"""

from __future__ import annotations

import uuid
from html import escape
from typing import TYPE_CHECKING

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals.models.inbox import TODAY
from runs.models.run import short_id
from runs.pages.moments import Moments
from runs.templatetags.look import avatar, icon, status

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.filters import Filter
    from approvals.models import Approval

_ANY = str(uuid.UUID(int=0))  # one address is made, and is that of each row with its id


class Writer:
    """Writes rows for one reader at one moment: what they have in common is asked once.

    `open_id` is that of the approval which is open beside the list; "" for none.
    """

    def __init__(self, reader: User, now: datetime, filter: Filter, open_id: str = "") -> None:
        self._reader, self._now, self._open_id = reader, now, open_id
        self._moments = Moments(now)
        self._address = escape(reverse("approvals:approval", args=[_ANY]) + filter.query)
        self._is_decided = filter.scope == "decided"
        words = {"high": _("High risk"), "medium": _("Medium risk"), "low": _("Low risk")}
        self._risks = {name: self._risk(name, word) for name, word in words.items()}
        self._select, self._for = _("Select: %(title)s"), _("for %(who)s")
        self._late, self._due, self._votes = escape(_("late")), escape(_("due")), _("%(votes)s of %(quorum)s")
        self._statuses: dict[str, str] = {}

    def written(self, row: Approval, group: str) -> SafeString:
        """One element of the list, of a row as `shown` reads it. `group`: that in which the row stands."""
        key, is_open, title = str(row.pk), row.outcome == "", escape(row.title)
        # of one that was decided under the reader's eyes
        outcome = f' data-outcome="{escape(row.outcome)}"' if row.outcome and not self._is_decided else ""
        current = ' aria-current="true"' if key == self._open_id else ""
        how_it_stands = self._open(row, group) if is_open else self._status(row.outcome)
        return SafeString(
            f'<li class="inbox-row" id="row-{key}"{outcome}>\n'
            f"{self._box(row) if is_open else ''}"
            f'  <a href="{self._address.replace(_ANY, key)}" data-key-row{current}>\n'
            f'    <h3 dir="auto">{title}</h3>\n'
            f"    {self._ago(row.opened_at if is_open else row.decided_at, end=True)}\n"
            f"    <p>{escape(self._about(row))}</p>\n"
            f'    <div class="inbox-row-meta">{how_it_stands}</div>\n'
            "  </a>\n"
            "</li>"
        )

    def _box(self, row: Approval) -> str:
        says = escape(self._select % {"title": row.title})
        return (
            '  <label class="inbox-row-pick"><input type="checkbox" name="pick"'
            f' value="{row.pk.hex}.{row.revision}" form="picked" aria-label="{says}" data-pick></label>\n'
        )

    def _about(self, row: Approval) -> str:
        """The graph, the run, and for whom it works."""
        asked_by = f" · {self._for % {'who': row.requester_name}}" if row.requester_name is not None else ""
        return f"{row.graph} {short_id(row.run_id)}{asked_by}"

    def _open(self, row: Approval, group: str) -> str:
        votes = {"votes": row.votes_so_far, "quorum": row.quorum}
        parts = (
            self._deadline(row.due_at, group) if row.due_at is not None else "",
            self._risks[row.risk],
            f"<span>{escape(self._votes % votes)}</span>" if row.quorum > 1 else "",
            self._holder(row) if row.assignee_id is not None else "",
        )
        return " ".join(part for part in parts if part)

    def _ago(self, moment: datetime, *, end: bool = False) -> SafeString:
        return self._moments.ago(moment, bare=True, end=end, focus=False)

    def _deadline(self, due_at: datetime, group: str) -> str:
        if due_at <= self._now:
            return f'<span class="due" data-late>{icon("clock")}{self._ago(due_at)} {self._late}</span>'
        on_clock = self._moments.on_clock(due_at, "H:i" if group == TODAY else "D j M, H:i", focus=False)
        return f'<span class="due">{icon("clock")}{self._due} {on_clock}</span>'

    @staticmethod
    def _risk(name: str, word: str) -> str:
        drawn = icon("risk") if name != "low" else ""
        return f'<span class="risk" data-risk="{name}">{drawn}{escape(word)}</span>'

    def _status(self, outcome: str) -> str:
        if outcome not in self._statuses:
            self._statuses[outcome] = render_to_string("shared/_status.html", status(outcome))
        return self._statuses[outcome]

    def _holder(self, row: Approval) -> SafeString:
        own = row.assignee_id == self._reader.pk
        label = _("Claimed by you") if own else _("Claimed by %(who)s") % {"who": row.holder_name}
        return avatar(row.holder_name, label=label)
