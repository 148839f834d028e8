"""What a node asks of people, and what it gets back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any  # payloads are any JSON

from runs.core.errors import GraphError

VERDICTS = ("approve", "edit", "reject", "respond")
EXPIRIES = ("expired", "rejected", "auto_approve")
RISKS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to people. `due` counts from the moment the question opens; reviewers are user or group names."""

    question: str
    payload: Any = None
    name: str | None = None
    reviewers: str | Sequence[str] = ()
    due: timedelta | datetime | None = None
    on_expiry: str = "expired"
    verdicts: Sequence[str] = ("approve", "edit", "reject")
    schema: Mapping[str, Any] | None = None
    quorum: int = 1
    exclude: Sequence[str] = ()
    risk: str = "low"
    sign: bool = False
    reasons: Sequence[str] = ()
    why: str = ""
    bind: Callable[[dict[str, Any]], object] | None = None

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise GraphError("Ask: the question is empty; say what the person decides")
        if self.on_expiry not in EXPIRIES:
            raise GraphError(f"Ask: on_expiry={self.on_expiry!r}; choose one of {', '.join(EXPIRIES)}")
        if not self.verdicts or set(self.verdicts) - set(VERDICTS):
            raise GraphError(f"Ask: verdicts={self.verdicts!r}; choose from {', '.join(VERDICTS)}")
        if self.risk not in RISKS:
            raise GraphError(f"Ask: risk={self.risk!r}; choose one of {', '.join(RISKS)}")
        if self.due is not None and not isinstance(self.due, (timedelta, datetime)):
            raise GraphError(f"Ask: due={self.due!r}; give a timedelta, or a datetime with its zone")
        if isinstance(self.due, datetime) and self.due.utcoffset() is None:
            raise GraphError(f"Ask: due={self.due!r} has no zone; give a datetime with its zone")
        if self.quorum < 1:
            raise GraphError(f"Ask: quorum={self.quorum}; at least one person decides")

    @property
    def people(self) -> list[str]:
        return [self.reviewers] if isinstance(self.reviewers, str) else list(self.reviewers)

    def renamed(self, name: str) -> Ask:
        return replace(self, name=name)

    def request(self, name: str, payload: Any, call: dict[str, Any] | None = None) -> dict[str, Any]:
        """All that people and policies are told, as the ledger keeps it."""
        due = self.due
        return {
            "question": self.question,
            "why": self.why,
            "payload": payload,
            "name": name,
            "reviewers": self.people,
            "due": due.total_seconds() if isinstance(due, timedelta) else due,
            "on_expiry": self.on_expiry,
            "verdicts": list(self.verdicts),
            "schema": dict(self.schema) if self.schema is not None else None,
            "quorum": self.quorum,
            "exclude": list(self.exclude),
            "risk": self.risk,
            "sign": self.sign,
            "reasons": list(self.reasons),
            "call": call,
            "settles": None,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What people said: verdict approve, edit, reject or respond; the payload as decided; who."""

    verdict: str
    payload: Any
    reason: str
    by: str
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What `reconcile` returns when the provider says that the call happened, with the call's result."""

    result: Any = None
