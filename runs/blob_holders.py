"""Who holds blobs beside the runs that use them: a blob is collected only when nobody does.

A run's own use is a `BlobUse` row, which `blobs.put` and `blobs.take_up` write. An app above `runs`
whose rows name a blob says so in its `AppConfig.ready`, once for each such column, so that no collector takes what they
show:

    from runs import blob_holders

    blob_holders.also(blob_holders.Holder("attachments", lambda: Attachment.objects.all(), "blob_id"))

Three rules for such an app, each of which closes a race with the collector:

1. Store the bytes with `runs.engine.blobs.lay_down(content, media_type, limit)` before the transaction that inserts
   the row. Call `blobs.take_up(run_id, laid)`, or `blobs.touch(run_id, sha256)` for one that is there, *in that
   transaction*, and before the row: this locks the blob's row, and a collector that waits for it then sees that it was
   touched.
2. Let the column be a ForeignKey to `runs.Blob` with on_delete=PROTECT, so that the database itself says no.
3. Having removed the last row that names a blob, call `Blob.objects.let_go([sha256, ...], now)` in that transaction:
   it is looked at a day later. What is forgotten there, `manage.py sweep` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any  # rows of any model

from django.db.models import Exists, OuterRef, Q, QuerySet


@dataclass(frozen=True, slots=True)
class Holder:
    """`rows` are all that may name a blob; `column` is where its sha256 stands (of a ForeignKey: `blob_id`)."""

    name: str
    rows: Callable[[], QuerySet[Any]]
    column: str

    def names(self) -> Exists:
        """Over Blob: whether one of the rows names it."""
        return Exists(self.rows().filter(**{self.column: OuterRef("pk")}))


_holders: dict[str, Holder] = {}


def also(holder: Holder) -> None:
    """Register; an app does so when it is ready."""
    _holders[holder.name] = holder


def known() -> Iterator[Holder]:
    yield from _holders.values()


def nobody() -> Q:
    """Over Blob: no holder names it."""
    free = Q()
    for holder in _holders.values():
        free &= ~Q(holder.names())
    return free
