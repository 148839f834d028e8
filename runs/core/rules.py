"""An author's predicates on a payload: which stages it needs, and what speaks against approving it.

They are asked when the question opens, and again for each edit, by the process that takes the decision: so they are
functions that can be found by name. They get the payload as it is stored and must not change anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any  # payloads are any JSON

from runs.core.errors import GraphError, Permanent

Rule = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """Some of the people who have to say yes, after those of the stage before.

    `when` is a predicate on the payload: where it returns False, the stage is passed over. `name` is what people see;
    left out, it is the reviewers.
    """

    reviewers: str | Sequence[str]
    quorum: int = 1
    name: str = ""
    when: Rule | None = None

    def __post_init__(self) -> None:
        if not self.people:
            raise GraphError("Stage: nobody is named; give user or group names")
        if self.quorum < 1:
            raise GraphError(f"Stage: quorum={self.quorum}; at least one person decides")
        if self.when is not None:
            reference(self.when, "Stage: when")

    @property
    def people(self) -> list[str]:
        return [self.reviewers] if isinstance(self.reviewers, str) else list(self.reviewers)

    def request(self, needed: bool) -> dict[str, Any]:
        return {
            "name": self.name or " or ".join(self.people),
            "reviewers": self.people,
            "quorum": self.quorum,
            "when": reference(self.when, "Stage: when") if self.when is not None else None,
            "needed": needed,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rules say of one payload: the numbers of the stages it needs, from 1, and the policy's objection."""

    needs: tuple[int, ...] = ()
    objection: str = ""

    @classmethod
    def of(cls, request: dict[str, Any]) -> Judgement:
        """The one that stands in a recorded request: that of the proposal."""
        stages = request.get("stages") or ()
        return cls(
            tuple(number for number, stage in enumerate(stages, 1) if stage["needed"]),
            request.get("objection") or "",
        )


def reference(rule: Rule, what: str) -> str:
    """The name under which every process finds the rule: `module:name`. Raises GraphError for what has none."""
    if not inspect.isfunction(rule) or "<" in rule.__qualname__ or inspect.iscoroutinefunction(rule):
        raise GraphError(
            f"{what}={rule!r}: give a plain function, written with def at the top of a module; "
            "a decision is checked by another process, which finds it by name"
        )
    return f"{rule.__module__}:{rule.__qualname__}"


def needed(name: str, said: object) -> bool:
    """What `when` returned. Raises Permanent unless it is True or False."""
    if said is True or said is False:
        return bool(said)
    raise Permanent(f"the rule {name} returned {said!r}; `when` returns True or False")


def objection(name: str, said: object) -> str:
    """What a policy returned: "" where nothing speaks against the payload. Raises Permanent for what is no text."""
    if said is None:
        return ""
    if isinstance(said, str):
        return said.strip()
    raise Permanent(f"the rule {name} returned {said!r}; a policy returns why not, as a text, or None")
