"""A run that another one has started, and how it ended, as the nodes of its parent see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # a result is the child's state

from runs.core.codec import storable
from runs.core.spending import Spent


@storable
@dataclass(frozen=True, slots=True)
class Child:
    """A run that was started. It can be kept in the state, and joined in a later step."""

    id: str
    graph: str


@storable
@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended: completed, failed or cancelled. `result` is its final state as a dict, if it completed.

    Of one that was started by itself and did not complete, `reached` is the state after its last step, and `spent`
    what it and all below it had recorded with run.spend until then, also in the step that failed.
    """

    id: str
    status: str
    result: Any = None
    error_kind: str = ""
    error: str = ""
    reached: Any = None
    spent: Spent | None = None

    @property
    def completed(self) -> bool:
        return self.status == "completed"
