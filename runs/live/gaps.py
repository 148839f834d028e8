"""Which rows of a growing table were seen. Ids commit out of order, so a missing one is asked for again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_GAPS = 10_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """PostgreSQL's transactions at one moment: all below `oldest` had ended, none from `next` on had written."""

    oldest: int
    next: int


class Seen:
    """Up to which id a table was read, and the ids below that which may still commit.

    An id is given up once every transaction has ended that may have taken it: those that had a number one look after
    the gap was noticed. (An INSERT takes its id a moment before its transaction's number, hence not the same look.)
    `in_order`: one writer at a time, as on SQLite. Then what is missing was rolled back, and nothing is kept.
    """

    def __init__(self, last: int = 0, in_order: bool = False) -> None:
        self.last = last
        self.in_order = in_order
        # id -> the number of a transaction before which it was taken, once that is known
        self.missing: dict[int, int | None] = {}

    def take(self, ids: Iterable[int], horizon: Horizon | None = None) -> set[int]:
        """Note what one look has found, and return the new ones. `horizon`: read before it, if there are gaps."""
        new = {each for each in ids if each > self.last or each in self.missing}
        for each in new:
            self.missing.pop(each, None)
        if horizon is not None:
            self._give_up(horizon)
        top = max(new, default=self.last)
        if top > self.last:
            if not self.in_order:
                self._open_gaps(new, top)
            self.last = top
        return new

    def _give_up(self, horizon: Horizon) -> None:
        kept: dict[int, int | None] = {}
        for each, before in self.missing.items():
            if before is None:
                kept[each] = horizon.next
            elif before > horizon.oldest:
                kept[each] = before
        self.missing = kept

    def _open_gaps(self, new: set[int], top: int) -> None:
        for each in range(max(self.last + 1, top - MOST_GAPS), top):
            if each not in new:
                self.missing[each] = None
        for each in sorted(self.missing)[:-MOST_GAPS]:
            del self.missing[each]
