"""How a page comes by an approval: through the user, with what it will show, or not at all."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.http import Http404

from approvals.models import Approval
from approvals.pages import ApprovalPage

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

    from runs.models import Run


class Erased(Http404):
    """What was asked is gone, together with its run; the run's page says so."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"This was erased together with run {run.short_id}.")
        self.run = run


def fetch(user: User, pk: uuid.UUID) -> Approval:
    """The approval if this person may see it. Raises Http404 for what they may not, as for what there is not."""
    seen = Approval.objects.visible_to(user).for_page().select_related("run__tombstone")
    approval = seen.filter(pk=pk).first()
    if approval is None:
        raise Http404(f"There is no approval {pk}, or you may not see it.")
    if getattr(approval.run, "tombstone", None) is not None:
        raise Erased(approval.run)
    return approval


def toast_of(request: HttpRequest) -> ApprovalPage | None:
    """What was just decided, by `?decided=<id>` in the address: for the notice with its way back."""
    try:
        pk = uuid.UUID(request.GET.get("decided", ""))
    except ValueError:
        return None
    try:
        page = ApprovalPage(fetch(request.user, pk), request.user)
    except Http404:
        return None
    return page if page.is_mine or page.my_vote else None
