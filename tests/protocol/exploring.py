"""Explicit-state exploration of the engine's protocols (DESIGN sections 5 and 6).

Every database transaction is one action; a worker may stop for any time between two of its actions (breadth first
tries every order, so a freeze needs no state of its own) or crash and forget. Numbers that are only compared for
equality (fence, answers) are kept as "same or not" per worker, and moments relative to now: that makes the space
finite.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol  # a state is whatever its model says

MOST_STATES = 400_000


class Model(Protocol):
    """States are immutable; `key` maps equal ones to equal values; `fault` names a broken promise, or is empty."""

    def start(self) -> Any: ...
    def key(self, state: Any) -> Hashable: ...
    def steps(self, state: Any) -> Iterator[tuple[str, Any]]: ...
    def fault(self, state: Any) -> str: ...
    def show(self, state: Any) -> str: ...


@dataclass(frozen=True)
class Explored:
    """`fault` and the shortest `trace` to it; without one, whether `whole` space was seen."""

    states: int
    whole: bool
    fault: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.fault or 'holds'} ({self.states:,} states)", *self.trace]
        return "\n    ".join(lines)


def explore(model: Model, most: int = MOST_STATES) -> Explored:
    """Breadth first from the start, until a fault, the end of the space, or `most` states."""
    first = model.start()
    came: dict[Hashable, tuple[Any, str, Any] | None] = {model.key(first): None}
    wave = [first]
    while wave and len(came) < most:
        later = []
        for state in wave:
            for label, after in model.steps(state):
                key = model.key(after)
                if key in came:
                    continue
                came[key] = (state, label, after)
                if fault := after.bad or model.fault(after):
                    return Explored(len(came), False, fault, _trace(model, came, key))
                later.append(after)
        wave = later
    return Explored(len(came), not wave)


def _trace(model: Model, came: dict[Hashable, Any], key: Hashable) -> tuple[str, ...]:
    lines = []
    while came[key] is not None:
        state, label, after = came[key]
        lines.append(f"{label:<52} {model.show(after)}")
        key = model.key(state)
    return tuple(reversed(lines))


def ahead(moment: int | None, now: int, floor: int = 0) -> int | None:
    """A moment as seen from now; all that lies behind `floor` is alike."""
    return None if moment is None else max(moment - now, floor)


def earliest(moment: int | None, other: int | None) -> int | None:
    if moment is None or other is None:
        return other if moment is None else moment
    return min(moment, other)


class Budgets:
    """How often each rare event may still happen; -1 is any number."""

    def __init__(self, **budgets: int) -> None:
        self.names, self.full = tuple(budgets), tuple(budgets.values())

    def spend(self, left: tuple[int, ...], name: str) -> tuple[int, ...] | None:
        """What is left after one such event, or None when there can be no more."""
        place = self.names.index(name)
        if left[place] < 0:
            return left
        return (*left[:place], left[place] - 1, *left[place + 1 :]) if left[place] else None
