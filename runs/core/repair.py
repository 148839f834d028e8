"""What a repair puts aside: answers that stopped the step, so that its next execution does not get them again."""

from __future__ import annotations

from collections.abc import Iterable

from runs.core import codec
from runs.core.ledger import DONE, EFFECT, FAILED, INTERRUPT, Entry


def set_aside(entries: Iterable[Entry], error_kind: str) -> list[Entry]:
    """Those entries of the step that answer no more; `error_kind` is what the run had failed as, "" where cancelled.

    What failed; a question whose deadline passed, where the run failed as expired. A decision on a call that was not
    carried out as well: it stands only if the same is proposed again. Children go on: they are no answer that stops.
    """
    entries = list(entries)
    carried_out = {entry.decided_by for entry in entries if entry.kind == EFFECT and entry.status == DONE}
    return [entry for entry in entries if not entry.aside and _is_past(entry, carried_out, error_kind)]


def _is_past(entry: Entry, carried_out: set[str | None], error_kind: str) -> bool:
    if entry.kind != INTERRUPT or entry.status != DONE:
        return entry.status == FAILED
    if entry.value["outcome"] == "expired":
        return error_kind == "expired"
    return codec.loads(entry.request)["call"] is not None and entry.key not in carried_out
