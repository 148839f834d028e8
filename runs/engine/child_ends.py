"""What became of the children that an entry has started, as their parent's node sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any  # states are the author's

from runs.core import codec
from runs.core.child import ChildEnd
from runs.core.codec_loose import restore_loosely
from runs.core.errors import DurableError, Permanent
from runs.core.ledger import Entry
from runs.engine import blobs
from runs.engine.below import spent_by
from runs.engine.durably import FAULTS
from runs.engine.state import StoredState, final_trees
from runs.engine.telling import end_of
from runs.models import statuses
from runs.models.entry import LedgerEntry
from runs.models.run import Run

A_QUERY = 500  # ends of them


def ends_of(parent_id: Any, entry: Entry) -> Iterator[ChildEnd]:
    """What became of the entry's children, in order."""
    if entry.child is not None:
        yield from _with_results(parent_id, [entry.value], also_reached=True)
        return
    children = Run.objects.filter(fan_out__entry=entry.id).order_by("item")
    if not (count := children.count()):  # of a fork: the origin's
        copied = LedgerEntry.objects.filter(pk=entry.id).values("copied_from")
        children = Run.objects.filter(fan_out__entry__in=copied).order_by("item")
        count = children.count()
    for first in range(0, count, A_QUERY):
        some = children.filter(item__gte=first, item__lt=first + A_QUERY)
        yield from _with_results(parent_id, [end_of(child) for child in some])


def _with_results(
    parent_id: Any, ends: list[dict[str, Any]], also_reached: bool = False
) -> Iterator[ChildEnd]:
    """The final states are read from the children themselves: what has completed changes no more.

    `also_reached`: and where the others stood, and what they had spent.
    """
    trees = final_trees([end["run"] for end in ends if end["status"] == statuses.COMPLETED])
    for end in ends:
        result = reached = spent = None
        if end["status"] == statuses.COMPLETED:
            tree = trees.get(end["run"])
            if tree is None:
                raise Permanent(f"what run {end['run']} came to was erased, and cannot be read any more")
            blobs.share(end["run"], parent_id, codec.encode(tree))
            result = restore_loosely(tree)
        elif also_reached:
            child = Run.objects.get(pk=end["run"])
            last = child.checkpoints.filter(digest=end["head"]).first()
            reached = _reached(parent_id, child, child.seq if last is None else last.seq)
            spent = spent_by(child.pk, None if last is None else last.at)
        yield ChildEnd(end["run"], end["status"], result, end["error_kind"], end["error"], reached, spent)


def _reached(parent_id: Any, child: Run, seq: int) -> Any:
    """The state at the checkpoint with which it ended; None where that cannot be read, as may be why it failed."""
    try:
        tree = StoredState.load(child.pk, seq).tree
        blobs.share(child.pk, parent_id, codec.encode(tree))
        return restore_loosely(tree)
    except FAULTS:
        raise
    except DurableError:
        return None
