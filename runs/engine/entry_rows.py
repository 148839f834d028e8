"""A ledger entry as a row, and as the pure core sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any  # column values

from runs.conf import conf
from runs.core.ledger import DONE, FAILED, Entry
from runs.engine import blobs
from runs.models.entry import LedgerEntry


def row_of(
    entry: Entry, run_id: Any, entries: Mapping[str, Entry], actor: str, now: datetime
) -> dict[str, Any]:
    """The columns of a new row; a long request goes to a blob. `entries`: those that it may refer to, by key."""
    answered = now if entry.status in (DONE, FAILED) else None
    return {
        "step": entry.step,
        "key": entry.key,
        "kind": entry.kind,
        "name": entry.name,
        "request": blobs.offload_text(
            run_id, entry.request, entry.key, conf.blob_bytes, conf.value_limit_bytes
        ),
        "request_digest": entry.request_digest,
        "idempotency_key": entry.idempotency_key,
        "write": entry.write,
        "status": entry.status,
        "result": entry.result,
        "error_kind": entry.error_kind,
        "error": entry.error,
        "attempts": entry.attempts,
        "tried_at": entry.tried_at,
        "due_at": entry.due_at,
        "opened_at": entry.asked_at or now,
        "answered_at": answered,
        "answered_by": actor if answered else "",
        "effective_at": answered,
        "taken_at": answered,
        "awaited": False,
        "approved_digest": "",
        "approval_head": "",
        "decided_by_id": entries[entry.decided_by].id if entry.decided_by else None,
        "settles_id": entries[entry.settles].id if entry.settles else None,
        "compensation": entry.compensation,
        "compensates_id": entry.compensates,
    }


def entry_of(row: LedgerEntry) -> Entry:
    """The pure view of a row; long texts are fetched from their blobs."""
    return Entry(
        key=row.key,
        kind=row.kind,
        name=row.name,
        request=blobs.load_text(row.run_id, row.request, row.key),
        request_digest=row.request_digest,
        status=row.status,
        write=row.write,
        idempotency_key=row.idempotency_key,
        result=blobs.load_text(row.run_id, row.result, row.key),
        error_kind=row.error_kind,
        error=row.error,
        attempts=row.attempts,
        asked_at=row.opened_at,
        answered_at=row.answered_at,
        tried_at=row.tried_at,
        due_at=row.due_at,
        taken=row.taken_at is not None,
        approved_digest=row.approved_digest,
        step=row.step,
        id=row.pk,
        child=None if row.child_id is None else str(row.child_id),
        decided_by=row.decided_by.key if row.decided_by_id else None,
        compensation=row.compensation,
        compensates=row.compensates_id,
        aside=row.aside,
    )
