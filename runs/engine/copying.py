"""What a fork takes over of the step that it enters, as entries of its own that name those they repeat."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any  # column values

from runs.conf import conf
from runs.core.ledger import FAILED
from runs.engine import blobs
from runs.models.entry import CHILD, DONE, EFFECT, INTERRUPT, SIGNAL, LedgerEntry
from runs.models.run import Run

LEFT_OUT = {
    "id",
    "run",
    "idempotency_key",
    "decided_by",
    "settles",
    "compensation",
    "compensates",
    "copied_from",
}
ASKED_ANEW = re.compile(
    r"(.+)([~?])\d+", re.DOTALL
)  # if the first one is there too: else an author called it so


def copies_of(origin: Run, made: Run, entries: list[LedgerEntry]) -> list[LedgerEntry]:
    """What stands in that step: what is done, and the answers on which something of it was done.

    Under the keys that the fork's first execution asks for: `paid` and `paid~2`, where what was `paid~2` is the first.
    """
    entries = [entry for entry in entries if entry.compensates_id is None]
    done = [entry for entry in entries if entry.status == DONE and entry.kind != INTERRUPT]
    copies, counted, keys = [], Counter[tuple[str, str]](), {entry.key for entry in entries}
    for entry in entries:
        if entry not in done and not (_may_stand(entry) and _something_stands_on(entry, done)):
            continue
        key = entry.key
        if entry.kind != EFFECT:
            anew = ASKED_ANEW.fullmatch(key)
            anew = anew if anew and anew[1] + anew[2].rstrip("~") in keys else None
            base, mark = (
                (anew[1], anew[2]) if anew else (key.removesuffix("?"), "?" if key.endswith("?") else "~")
            )
            counted[base, mark] += 1
            first = key if not anew else base + mark.rstrip("~")
            key = first if counted[base, mark] == 1 else f"{base}{mark}{counted[base, mark]}"
        copies.append(_copy(origin, made, entry, key))
    return copies


def _may_stand(entry: LedgerEntry) -> bool:
    """A failure, or what people or a deadline said; of a call that was approved, the call itself says enough."""
    if entry.kind != INTERRUPT:
        return entry.status == FAILED
    if entry.status != DONE or entry.aside or entry.settles_id is not None:
        return False
    return entry.request_value()["call"] is None or entry.result_value()["verdict"] not in ("approve", "edit")


def _something_stands_on(entry: LedgerEntry, done: list[LedgerEntry]) -> bool:
    """Whether the node may have gone its way after this answer: it stands beside what was done there.

    Upon what it has not taken it has done nothing; a decision can be undone until then.
    """
    at = entry.taken_at if entry.kind == INTERRUPT else entry.taken_at or entry.answered_at
    return at is not None and any(
        other.opened_at >= at and (other.write or other.kind in (SIGNAL, CHILD)) for other in done
    )


def _copy(origin: Run, made: Run, entry: LedgerEntry, key: str) -> LedgerEntry:
    """The same question and answer in the fork."""
    columns: dict[str, Any] = {
        field.attname: getattr(entry, field.attname)
        for field in LedgerEntry._meta.concrete_fields
        if field.name not in LEFT_OUT
    }
    for name in ("request", "result"):
        if columns[name] is None:
            continue
        text = blobs.load_text(origin.pk, columns[name], entry.key)
        blobs.share(origin.pk, made.pk, text)
        columns[name] = blobs.offload_text(made.pk, text, entry.key, conf.blob_bytes, conf.value_limit_bytes)
    columns["key"] = key
    columns["taken_at"] = entry.taken_at or entry.answered_at
    columns["aside"] = (
        entry.status == FAILED
    )  # as a repair would have it: the core says whether it is asked anew
    return LedgerEntry(run=made, copied_from=entry.copied_from or entry.pk, **columns)
