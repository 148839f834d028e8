"""What happens to the ledger when a run leaves a step, or ends."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from runs import hooks
from runs.core.chain import entry_line
from runs.engine import blobs
from runs.models.entry import DONE, EFFECT, IN_DOUBT, OPEN, LedgerEntry
from runs.models.run import Run


def close_step(
    run: Run, outcome: str, now: datetime, *, ended: bool, keep_sent: bool = False
) -> dict[str, list[object]]:
    """Close what is open in the step in progress, under the Run lock; the lines for the checkpoint that leaves it.

    Questions close as `outcome` (superseded, or cancelled at the end). No run ends with an open write: one that may
    have been sent becomes in doubt. An answer that nobody took is covered here, for it can be taken no more.

    `keep_sent`: the run lives on to undo what it did. It finds out what became of such a write, and the questions to
    people about that stay open.
    """
    lines: dict[str, list[object]] = {}
    entries = LedgerEntry.objects.filter(run=run, step=run.step + 1).order_by("id")
    for entry in entries:
        if entry.status == OPEN and not (keep_sent and _is_about_a_call(entry)):
            if entry.kind == EFFECT and entry.write and entry.tried_at is not None:
                entry.status, entry.error = (
                    IN_DOUBT,
                    entry.error or "the run ended while the call was under way",
                )
            else:
                entry.status, entry.answered_at, entry.answered_by = "cancelled", now, "engine"
            entry.save(update_fields=["status", "error", "answered_at", "answered_by"])
            if entry.kind == "interrupt":
                hooks.interrupt_closed.send(
                    sender=LedgerEntry, run=run, entry=entry, outcome=outcome, now=now
                )
        elif entry.taken_at is not None and not ended:
            continue
        lines[entry.key] = line_of(entry)
    return lines


def _is_about_a_call(entry: LedgerEntry) -> bool:
    """A write that may have been sent, or a question about one."""
    return entry.write and entry.tried_at is not None or entry.settles_id is not None


def lines_of(entries: Iterable[LedgerEntry]) -> list[list[object]]:
    """What a checkpoint says of entries that live on; an answer that nobody has taken is left out: it may be undone."""
    return [line_of(entry) for entry in entries if entry.status != DONE or entry.taken_at is not None]


def line_of(entry: LedgerEntry) -> list[object]:
    return entry_line(
        entry.key,
        entry.kind,
        entry.status,
        entry.request_digest,
        blobs.load_text(entry.run_id, entry.result, entry.key),
        entry.answered_by,
        entry.answered_at,
        entry.approval_head,
    )
