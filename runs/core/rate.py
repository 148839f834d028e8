"""How often a tool may be called, by all workers together: a rate as its author writes it, and the calls that count.

Pure: what is now is an argument. The row that keeps a window is runs/models/tool_rate.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any  # arguments are the author's

from runs.core import codec
from runs.core.errors import GraphError
from runs.core.retry import LONGEST_SECONDS

WRITTEN = re.compile(r"([1-9]\d{0,6})/([1-9]\d{0,3})?([smhd])", re.ASCII)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST_NAME = 200
PARTS = 60  # of more calls than that, those within one part of the period count from the last of them
MICRO = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Use = tuple[int, int, int]  # the first and the last moment, in microseconds, and how many calls


@dataclass(frozen=True, slots=True)
class Rate:
    """At most so many calls in any period: "10/m", "100/15m"; s, m, h and d are second, minute, hour and day.

    `by`: an argument's name, or a function of the arguments (a dict): each value has the rate for itself. Tools whose
    rates have one `name` and are written alike share it; without a name, those do whose tools are called alike.
    """

    often: str
    by: str | Callable[[dict[str, Any]], Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.often, str) or not WRITTEN.fullmatch(self.often):
            raise GraphError(f"rate {self.often!r}: write calls and period, such as 10/m, 5/s or 100/15m")
        if len(self.name) > LONGEST_NAME:
            raise GraphError(f"rate {self.often!r}: a name of at most {LONGEST_NAME} characters")

    @property
    def calls(self) -> int:
        return int(WRITTEN.fullmatch(self.often)[1])

    @property
    def period(self) -> int:
        """In microseconds."""
        _, many, unit = WRITTEN.fullmatch(self.often).groups()
        return int(many or 1) * SECONDS[unit] * MICRO

    def key_of(self, arguments: Mapping[str, Any]) -> str:
        """What tells apart that counts apart, also from another rate of the same name: the rate as it is written, or a
        digest of it and of the value, which itself is not kept."""
        if self.by is None:
            return self.often
        value = self.by(dict(arguments)) if callable(self.by) else arguments[self.by]
        return codec.digest(codec.dumps([self.often, value]))


@dataclass(frozen=True, slots=True)
class Window:
    """The calls that still count, oldest first, and up to which moment those reach that wait in line."""

    uses: tuple[Use, ...] = ()
    line: int = 0

    @classmethod
    def read(cls, text: str) -> Window:
        kept = json.loads(text) if text else {"uses": [], "line": 0}
        return cls(tuple((first, last, many) for first, last, many in kept["uses"]), kept["line"])

    @property
    def text(self) -> str:
        return json.dumps({"uses": self.uses, "line": self.line}, separators=(",", ":"))

    def ask(self, rate: Rate, now: datetime, *, in_line: bool = False) -> tuple[Window, float]:
        """The window after one more call and 0.0; or in how many seconds to ask again, and nothing is counted.

        In any period, the moment of its end left out, there are at most `rate.calls`. Who comes while others wait is
        placed behind them, one a call's share of the period after the other; `in_line`: this one has waited.
        """
        at, calls, period = _micros(now), rate.calls, rate.period
        known = self._known(at)
        uses = _within(known, at, period)
        line = at if self._is_deserted(at, period) else self.line
        free = _free(uses, at, calls, period)
        if free <= at and (in_line or line <= at):
            return Window(_counted(uses, at, calls, period), line), 0.0
        ahead = line + -(-period // calls) if line > at and not in_line else free
        moment = min(max(free, ahead), at + int(LONGEST_SECONDS) * MICRO)
        return Window(tuple(uses or known[-1:]), max(line, moment)), max(moment - at, 1) / MICRO

    def count(self, calls: int, seconds: int, now: datetime) -> Window:
        """After one more, for which there was room, of at most `calls` in any period of so many seconds."""
        at, period = _micros(now), seconds * MICRO
        return Window(_counted(_within(self._known(at), at, period), at, calls, period))

    def free_at(self, calls: int, seconds: int, now: datetime) -> datetime:
        """From when on there is room for one more of at most `calls` in any period of so many seconds."""
        at, period = _micros(now), seconds * MICRO
        return EPOCH + timedelta(microseconds=_free(_within(self._known(at), at, period), at, calls, period))

    def _known(self, at: int) -> list[Use]:
        """A clock that was put back: what it counted later than now counts as now, so nobody waits longer than a
        period."""
        return [(min(first, at), min(last, at), many) for first, last, many in self.uses]

    def _is_deserted(self, at: int, period: int) -> bool:
        """Whether the line is nobody's: those in it were cancelled, or the clock was put back since it was formed.

        Who waits calls in their turn, so there is a call in each period; one more is left for workers that are late.
        """
        last = max((last for _, last, _ in self.uses), default=0)
        return self.line > at and not at - 2 * period < last <= at

    def idle_at(self, rate: Rate, now: datetime) -> datetime:
        """From when on an empty window says the same."""
        last = max((last + rate.period for _, last, _ in self.uses), default=0)
        return EPOCH + timedelta(microseconds=max(last, self.line, _micros(now)))


def _within(uses: list[Use], at: int, period: int) -> list[Use]:
    return [use for use in uses if use[1] > at - period]


def _free(uses: list[Use], at: int, calls: int, period: int) -> int:
    """When there is room for one more: so many have to be over before."""
    free, over = at, sum(many for _, _, many in uses) - calls + 1
    for _, last, many in uses:
        if over <= 0:
            break
        free, over = last + period, over - many
    return free


def _counted(uses: list[Use], at: int, calls: int, period: int) -> tuple[Use, ...]:
    if uses and calls > PARTS and at - uses[-1][0] < period // PARTS:
        first, _, many = uses.pop()
        return (*uses, (first, at, many + 1))
    return (*uses, (at, at, 1))


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)
