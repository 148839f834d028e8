"""The stages of one approval: how many have to say yes in each, and which of them the proposal needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # a request is any JSON

if TYPE_CHECKING:
    from approvals.models import Approval

FIRST = 1


@dataclass(frozen=True, slots=True)
class Stage:
    """`needed` is by the proposal; an edit says for itself which it needs (Decision.needs)."""

    number: int
    name: str
    quorum: int
    needed: bool = True


def of_request(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What an approval keeps of the stages that were asked for; [] where there is only one."""
    return [
        {"name": stage["name"], "quorum": stage["quorum"], "needed": stage["needed"]}
        for stage in request.get("stages") or ()
    ]


def stages_of(approval: Approval) -> tuple[Stage, ...]:
    """In their order; one without a name where the author asked for none."""
    if not approval.stages:
        return (Stage(FIRST, "", approval.quorum),)
    return tuple(
        Stage(number, kept["name"], kept["quorum"], kept["needed"])
        for number, kept in enumerate(approval.stages, FIRST)
    )
