"""What stands on the table, whose votes are for it, and who is asked next: told from the decisions alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from approvals.words import EDIT, REJECT, RESPOND

if TYPE_CHECKING:
    from approvals.models import Decision
    from approvals.stages import Stage


@dataclass(frozen=True, slots=True)
class Tally:
    """`amendment` is the decision whose payload is on the table (None: the proposal's); `votes` are by user id.

    `needs` are the numbers of the stages that this payload needs, `missing` the first of them without enough votes;
    None when all have said yes.
    """

    amendment: Decision | None = None
    votes: dict[int, Decision] = field(default_factory=dict)
    needs: tuple[int, ...] = ()
    missing: Stage | None = None


def tally(standing: Iterable[Decision], proposal_digest: str, stages: Sequence[Stage]) -> Tally:
    """Count the decisions that nobody took back, in their order.

    A vote is for one payload and in one stage: an edit puts another payload on the table and starts the count anew, in
    all stages, with the editor's vote in theirs. When that edit is taken back, what was there before is on the table
    again, with the votes it had.
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
    needs = needs_of(amendment, stages)
    given = [vote.stage for vote in votes.values()]
    missing = (
        stage for stage in stages if stage.number in needs and given.count(stage.number) < stage.quorum
    )
    return Tally(amendment, votes, needs, next(missing, None))


def needs_of(amendment: Decision | None, stages: Sequence[Stage]) -> tuple[int, ...]:
    """The stages that the payload on the table needs."""
    if amendment is not None and amendment.needs:
        return tuple(amendment.needs)
    return tuple(stage.number for stage in stages if stage.needed)


def _agrees(decision: Decision, amendment: Decision | None) -> bool:
    """The same edit, or the same answer, as the one on the table."""
    return (
        amendment is not None
        and amendment.verdict == decision.verdict
        and amendment.payload_digest == decision.payload_digest
    )
