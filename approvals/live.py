"""Approvals on live pages: `approval:<id>`, and `inbox` for every list and count of them."""

from __future__ import annotations

from approvals.models import Activity, Approval, Decision
from runs.live import tail, watching

# A decision is no checkpoint, but the run's page shows it.
NAMES = {"approval": "approval_id", "run": "approval__run_id"}


def register() -> None:
    watching.also(watching.Subject("approval", "inbox", Approval.objects.visible_to))
    tail.follow(tail.Source(Decision, NAMES), tail.Source(Activity, NAMES))
