"""What a node asks of people, and what it gets back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any  # payloads are any JSON

from runs.core.errors import GraphError
from runs.core.rules import Judgement, Rule, Stage, reference

VERDICTS = ("approve", "edit", "reject", "respond")
EXPIRIES = ("expired", "rejected", "auto_approve")
RISKS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to people. `due` counts from the moment the question opens; reviewers are user or group names.

    `stages` stand in place of `reviewers` and `quorum`; `policy` says, of a payload, what speaks against approving it.
    `fixed`: the groups' members as they are when the question opens. After `escalate_after`, others may decide as well.
    `tell`: notices by mail and chat may hold the payload.
    """

    question: str
    payload: Any = None
    name: str | None = None
    reviewers: str | Sequence[str] = ()
    due: timedelta | datetime | None = None
    on_expiry: str = "expired"
    verdicts: Sequence[str] = ("approve", "edit", "reject")
    schema: Mapping[str, Any] | None = None
    quorum: int = 1
    stages: Sequence[Stage] = ()
    fixed: bool = False
    exclude: Sequence[str] = ()
    escalate_to: str | Sequence[str] = ()
    escalate_after: timedelta | None = None
    risk: str = "low"
    sign: bool = False
    reasons: Sequence[str] = ()
    why: str = ""
    policy: Rule | None = None
    bind: Callable[[dict[str, Any]], object] | None = None
    tell: bool = False

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
        if self.policy is not None:
            reference(self.policy, "Ask: policy")
        self._check_stages()
        self._check_escalation()

    def _check_stages(self) -> None:
        if not self.stages:
            return
        if self.people or self.quorum != 1:
            raise GraphError("Ask: reviewers or quorum beside stages; give them to each stage")
        if not all(isinstance(stage, Stage) for stage in self.stages):
            raise GraphError(f"Ask: stages={self.stages!r}; give Stage(...) for each")
        if all(stage.when is not None for stage in self.stages):
            raise GraphError("Ask: every stage has a `when`, so a payload may need none; leave it out of one")

    def _check_escalation(self) -> None:
        if bool(self.escalation_people) != (self.escalate_after is not None):
            raise GraphError("Ask: escalate_to and escalate_after belong together; give both or neither")
        if self.escalate_after is not None and self.escalate_after <= timedelta(0):
            raise GraphError(f"Ask: escalate_after={self.escalate_after}; a positive time is needed")

    @property
    def people(self) -> list[str]:
        return _names(self.reviewers)

    @property
    def escalation_people(self) -> list[str]:
        return _names(self.escalate_to)

    def renamed(self, name: str) -> Ask:
        return replace(self, name=name)

    def request(
        self, name: str, payload: Any, call: dict[str, Any] | None = None, judged: Judgement | None = None
    ) -> dict[str, Any]:
        """All that people and rules are told, as the ledger keeps it; `judged` is what the rules say of `payload`."""
        due, after = self.due, self.escalate_after
        judged = judged or Judgement(tuple(range(1, len(self.stages) + 1)))
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
            "stages": [stage.request(number in judged.needs) for number, stage in enumerate(self.stages, 1)],
            "fixed": self.fixed,
            "exclude": list(self.exclude),
            "escalate": {"to": self.escalation_people, "after": after.total_seconds()} if after else None,
            "risk": self.risk,
            "sign": self.sign,
            "reasons": list(self.reasons),
            "policy": reference(self.policy, "Ask: policy") if self.policy is not None else None,
            "objection": judged.objection,
            "call": call,
            "settles": None,
            **({"tell": True} if self.tell else {}),  # requests that do not say so stay as they were
        }


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


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
