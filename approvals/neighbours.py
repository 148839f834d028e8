"""Where an approval stands in a list, what is beside it, and what comes after its decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from approvals.counting import Count
    from approvals.listing import Listing
    from approvals.models import Approval


@dataclass(frozen=True, slots=True)
class Standing:
    """`number` is unknown off the first page; one that is not in the list has its first open one after it."""

    number: int | None
    count: Count
    before: Approval | None
    after: Approval | None

    @classmethod
    def of(cls, approval: Approval, listing: Listing) -> Standing:
        rows = listing.rows
        at = _index(approval, rows)
        if at is None:
            return cls(None, listing.count, None, next((row for row in rows if row.is_open), None))
        number = at + 1 if not listing.filter.after else None
        before, after = rows[at - 1] if at else None, rows[at + 1] if at + 1 < len(rows) else None
        return cls(number, listing.count, before, after)


def next_open(approval: Approval, listing: Listing) -> Approval | None:
    """What to show after a decision: the next open one below it, wherever pages begin, else the first of the page.

    It is read from the place where it stood: what is decided is in no list of what is open any more. One whose deadline
    has passed comes last, for it cannot be decided.
    """
    late: list[Approval] = []
    for some in (listing.below(approval), listing):
        others = [row for row in some.rows if row.is_open and row.pk != approval.pk]
        in_time = next((row for row in others if row.due_at is None or row.due_at > listing.now), None)
        if in_time is not None:
            return in_time
        late += others
    return late[0] if late else None


def _index(approval: Approval, rows: list[Approval]) -> int | None:
    return next((at for at, row in enumerate(rows) if row.pk == approval.pk), None)
