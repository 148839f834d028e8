"""Approvals on live pages: `approval:<id>`, and `inbox` for every list and count of them."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from approvals.models import Activity, Approval, Decision
from runs.live import tail, watching

# A decision is no checkpoint, but the run's page shows it.
NAMES = {"approval": "approval_id", "run": "approval__run_id"}


def register() -> None:
    watching.also(watching.Subject("approval", "inbox", Approval.objects.visible_to, _runs))
    tail.follow(tail.Source(Decision, NAMES), tail.Source(Activity, NAMES))


def _runs(approvals: Collection[uuid.UUID]) -> list[uuid.UUID]:
    return list(Approval.objects.filter(pk__in=approvals).order_by().values_list("run", flat=True).distinct())
