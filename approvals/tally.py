"""What stands on the table, and whose votes are for it: told from the decisions alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from approvals.words import EDIT, REJECT, RESPOND

if TYPE_CHECKING:
    from approvals.models import Decision


@dataclass(frozen=True, slots=True)
class Tally:
    """`amendment` is the decision whose payload is on the table (None: the proposal's); `votes` are by user id."""

    amendment: Decision | None = None
    votes: dict[int, Decision] = field(default_factory=dict)


def tally(standing: Iterable[Decision], proposal_digest: str) -> Tally:
    """Count the decisions that nobody took back, in their order.

    A vote is for one payload: an edit puts another one on the table and starts the count anew with the editor's vote.
    When that edit is taken back, what was there before is on the table again, with the votes it had.
    """
    amendment: Decision | None = None
    votes: dict[int, Decision] = {}
    for decision in standing:
        if decision.verdict == REJECT:
            continue
        on_table = amendment.payload_digest if amendment is not None else proposal_digest
        if decision.verdict in (EDIT, RESPOND) and not _agrees(decision, amendment):
            amendment, votes = decision, {decision.by_id: decision}
        elif decision.payload_digest == on_table:
            votes[decision.by_id] = decision
    return Tally(amendment, votes)


def _agrees(decision: Decision, amendment: Decision | None) -> bool:
    """The same edit, or the same answer, as the one on the table."""
    return (
        amendment is not None
        and amendment.verdict == decision.verdict
        and amendment.payload_digest == decision.payload_digest
    )
