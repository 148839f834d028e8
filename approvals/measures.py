"""Numbers about approvals for whoever watches an installation, by the same rows as the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvals.models import Approval, Target, attention

if TYPE_CHECKING:
    from datetime import datetime

MEANINGS = {
    "approvals_open": "Approvals that nobody has decided.",
    "approvals_overdue": "Open approvals past their deadline.",
    "approvals_needing_attention": "Open approvals that nobody can decide, or that wait long without a deadline.",
    "targets_failing": "Webhooks and chats that take no notices.",
}


def measures(now: datetime) -> dict[str, int]:
    """How many are open, past their deadline, and in need of attention, over all runs; targets that take no notices.

    Where more may need attention than are looked at, the number is of those that were (`attention.MOST`).
    """
    still_open = Approval.objects.open()
    return {
        "approvals_open": still_open.count(),
        "approvals_overdue": still_open.filter(due_at__lte=now).count(),
        "approvals_needing_attention": len(attention.found(Approval.objects.all(), now).keys),
        "targets_failing": Target.objects.filter(failing_since__isnull=False).count(),
    }
