"""What a repair puts aside: answers that stopped the step, so that its next execution does not get them again."""

from __future__ import annotations

from collections.abc import Iterable

from runs.core import codec
from runs.core.ledger import CANCELLED, CHILD, DONE, EFFECT, FAILED, INTERRUPT, Entry


def set_aside(entries: Iterable[Entry], error_kind: str) -> list[Entry]:
    """Those entries of the step that answer no more; `error_kind` is what the run had failed as, "" where cancelled.

    What failed; the start of a child that ended with the run; a question whose deadline passed, where the run failed as
    expired. A decision on a call that was not carried out as well: it stands only if the same is proposed again.
    """
    entries = list(entries)
    carried_out = {entry.decided_by for entry in entries if entry.kind == EFFECT and entry.status == DONE}
    return [entry for entry in entries if not entry.aside and _is_past(entry, carried_out, error_kind)]


def is_detached(entry: Entry) -> bool:
    """Whether the entry has started children that go on when their parent ends."""
    return codec.loads(entry.request).get("on_parent_end") == "detach"


def _is_past(entry: Entry, carried_out: set[str | None], error_kind: str) -> bool:
    if entry.kind == CHILD:
        return entry.status == CANCELLED and not is_detached(entry)
    if entry.kind != INTERRUPT or entry.status != DONE:
        return entry.status == FAILED
    if entry.value["outcome"] == "expired":
        return error_kind == "expired"
    return codec.loads(entry.request)["call"] is not None and entry.key not in carried_out
