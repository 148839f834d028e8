"""Which row of an approval's trail is an occasion for notices; written in the transaction of the change."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any  # what a change sets

from django.conf import settings

from approvals import mentions
from approvals import words as trail
from approvals.models.decision import Decision
from approvals.models.notice import Occasion
from approvals.notices import words
from runs.conf import conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from approvals.models.activity import Activity
    from approvals.models.approval import Approval

OF_ACTIVITY = {
    trail.OPENED: words.ASKED,
    trail.REMINDED: words.REMINDED,
    trail.ESCALATED: words.ESCALATED,
    trail.ASSIGNED: words.ASSIGNED,
    trail.DELEGATED: words.ASSIGNED,
    trail.EXPIRED: words.EXPIRED,
    trail.CLOSED: words.CLOSED,
    trail.UNDONE: words.REOPENED,
}
A_MOMENT = timedelta(seconds=1)


def note(approval: Approval, row: Decision | Activity, changes: Mapping[str, Any]) -> None:
    """Write the occasion, if it is one and notices are on: without the site's address there is nothing to link."""
    if not settings.DURABLEWEB["site_url"]:
        return
    kind = _kind(row, changes)
    if kind:
        wait = timedelta(0)
        if kind == words.DECIDED and not approval.request.get("sign"):
            wait = timedelta(seconds=conf.undo_seconds) + A_MOMENT  # it may be undone until then
        Occasion(approval=approval, seq=row.seq, kind=kind, at=row.at, look_at=row.at + wait).save(
            force_insert=True
        )


def _kind(row: Decision | Activity, changes: Mapping[str, Any]) -> str:
    if not isinstance(row, Decision):
        if row.kind == trail.COMMENTED:
            return words.MENTIONED if mentions.names_in(row.text) else ""
        return OF_ACTIVITY.get(row.kind, "")
    if changes.get("outcome"):
        return words.DECIDED
    return words.ASKED if {"stage", "amendment"} & changes.keys() else ""
