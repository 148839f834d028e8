"""The chain of one approval: each decision and activity carries a digest that covers the one before.

A digest is SHA-256 over the JSON text (ASCII, no spaces) of the list

    [format, digest before, approval id, seq, row's table, revision, at, ...the row's own links]

`at` is UTC with six decimals; people are their user ids; the first row has "" as the digest before. Decisions and
activities share one count, so that a row which was removed, moved or changed breaks the chain at its place.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import TYPE_CHECKING

from runs.models import Tombstone
from runs.models.tombstone import ERASED

if TYPE_CHECKING:
    from approvals.models import Activity, Approval, Decision
    from runs.models import Run

FORMAT = 1


def link(before: str, row: Decision | Activity) -> str:
    """The digest of `row`, which follows the row with the digest `before`."""
    fields = [
        FORMAT,
        before,
        str(row.approval_id),
        row.seq,
        row._meta.model_name,
        row.revision,
        row.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        *row.links(),
    ]
    return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()


def first_break(approval: Approval) -> str | None:
    """What is wrong with the chain, naming the first row that was changed, removed or moved; None if intact."""
    before = ""
    rows = trail(approval)
    erased = Tombstone.objects.filter(run=approval.run_id).exists()
    for place, row in enumerate(rows, start=1):
        if row.seq != place:
            return f"row {place} of approval {approval.pk} is missing: row {row.seq} follows row {place - 1}"
        if erased and _is_empty(row):
            before = row.digest  # covered by the digest of the row after it, and by the approval's head
            continue
        gone = erased and not getattr(row, "payload", "")
        if not gone and hasattr(row, "payload") and _digest(row.payload) != row.payload_digest:
            return f"row {place} of approval {approval.pk} (decision): its payload was changed"
        if not gone and hasattr(row, "seen") and row.seen_digest != (_digest(row.seen) if row.seen else ""):
            return f"row {place} of approval {approval.pk} (decision): what was seen was changed"
        if link(before, row) != row.digest:
            return f"row {place} of approval {approval.pk} ({row._meta.model_name}) was changed or moved"
        before = row.digest
    if (approval.length, approval.head) != (len(rows), before):
        return f"the last row of approval {approval.pk} is missing: {len(rows)} of {approval.length} rows"
    return None


def trail(approval: Approval) -> list[Decision | Activity]:
    """All decisions and activities of one approval, in order: two queries."""
    rows: list[Decision | Activity] = [
        *approval.decisions.select_related("by", "instead_of"),
        *approval.activities.select_related("by", "to", "decision"),
    ]
    return sorted(rows, key=lambda row: row.seq)


def trail_as_read(approval: Approval) -> list[Decision | Activity]:
    """The trail up to where `approval` was read, for a page: without a statement for decisions where there are none."""
    read = {"seq__lte": approval.length}
    rows: list[Decision | Activity] = list(
        approval.activities.filter(**read).select_related("by", "to", "decision")
    )
    if len(rows) < approval.length:
        rows += approval.decisions.filter(**read).select_related("by", "instead_of")
    return sorted(rows, key=lambda row: row.seq)


def _is_empty(row: Decision | Activity) -> bool:
    """Whether a text of it was erased that its digest covers: it cannot be computed again."""
    return ERASED in (getattr(row, "reason", ""), getattr(row, "text", ""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def first_break_of_run(run: Run) -> str | None:
    """The same over every approval of a run, for `verify`."""
    from approvals.models import Approval

    approvals = Approval.objects.filter(run=run).order_by("id")
    return next((broken for approval in approvals if (broken := first_break(approval)) is not None), None)
