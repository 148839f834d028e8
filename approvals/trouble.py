"""Why what somebody sent was not done, for the page that shows it again with what they had typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from approvals.forms.posted import Draft


@dataclass
class Trouble:
    """Why a decision was not taken: what to say, and what the person had typed."""

    status: int
    message: str
    draft: Draft | None = None
    reason: str = ""
    verdict: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_conflict(self) -> bool:
        return self.status == 409

    @property
    def is_text(self) -> bool:
        """What was typed is words that would be lost, not a name that is chosen again."""
        return bool(self.reason) and self.verdict != "hand_over"

    @property
    def of_comment(self) -> str:
        if self.verdict != "comment":
            return ""
        return " ".join(map(str, [*self.fields.get("text", ()), *self.fields.get("files", ())]))

    @property
    def of_reason(self) -> str:
        return " ".join(self.fields.get("reason", ()))
