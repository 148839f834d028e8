"""Where a question of a run is decided, for pages of the engine that know only its ledger entry."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from approvals.models import Approval
from runs.models import LedgerEntry


def of_questions(entries: Sequence[LedgerEntry]) -> dict[int, str]:
    """Entry id -> the page of its approval. One query."""
    ids = [entry.pk for entry in entries if entry.kind == "interrupt"]
    found = Approval.objects.filter(entry_id__in=ids).values_list("entry_id", "pk") if ids else ()
    return {entry_id: reverse("approvals:approval", args=[approval_id]) for entry_id, approval_id in found}
