"""The closed set of what one execution of a node can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # the state is the author's


@dataclass(frozen=True, slots=True)
class Stepped:
    """The node finished: this state, then that node (or END)."""

    next: str
    state: Any


@dataclass(frozen=True, slots=True)
class Waits:
    """The node needs answers that are not there; `keys` are the entries it waits for, all of them."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutsOff:
    """Again after `delay` seconds; `counts` when it used up one of the node's attempts."""

    delay: float
    error: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class LinesUp:
    """A call waits for the rate of its tool, `delay` seconds: nothing was tried, and nothing has failed."""

    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class Fails:
    """The run fails; `kind` is one of the error kinds of DESIGN section 2."""

    kind: str
    error: str


@dataclass(frozen=True, slots=True)
class Compensated:
    """Nothing is left to undo (`all`), or one write less."""

    all: bool


@dataclass(frozen=True, slots=True)
class LetsGo:
    """The lease is too short to begin a call: another claim goes on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Another worker or a verb has taken the run: nothing more may be written."""

    reason: str


Outcome = Stepped | Waits | PutsOff | LinesUp | Fails | Compensated | LetsGo | Lost


class Stop(BaseException):
    """Control flow through the author's code; a BaseException, so that `except Exception` lets it pass."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome
