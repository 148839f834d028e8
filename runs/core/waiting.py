"""Waits that other systems and the clock end: signals by name, and timers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar  # a signal's payload is any value

from runs.core import codec
from runs.core.asking import Asking
from runs.core.commands import Work
from runs.core.errors import Permanent, TimedOut
from runs.core.ledger import DONE, FAILED, SIGNAL, TIMER, Entry
from runs.core.moments import Until, check_until, plain
from runs.core.outcomes import Stop, Waits
from runs.core.words import is_storable

LONGEST_NAME = 120  # of a signal; its keys add a count


@dataclass(frozen=True, slots=True)
class Wait:
    """The next signal of that name. `timeout` counts from when the wait opens, or is a moment; None is for ever."""

    name: str
    timeout: Until | None = None
    kind: ClassVar[str] = SIGNAL

    def __post_init__(self) -> None:
        check_signal_name(self.name)
        if self.timeout is not None:
            check_until(self.timeout, f"the timeout of the wait for {self.name!r}")

    @property
    def until(self) -> Until | None:
        return self.timeout

    @property
    def request(self) -> str:
        return codec.dumps({"signal": self.name, "timeout": plain(self.timeout)})


@dataclass(frozen=True, slots=True)
class Timer:
    """Some time from when the timer opens, or until a moment."""

    until: Until
    kind: ClassVar[str] = TIMER
    name: ClassVar[str] = "sleep"  # of every timer: their keys are sleep#1, sleep#2

    def __post_init__(self) -> None:
        check_until(self.until, "a timer")

    @property
    def request(self) -> str:
        return codec.dumps({"until": plain(self.until)})


class Waiting(Asking):
    """The part of a node's questions that a signal or the clock answers."""

    def wait(self, item: Wait | Timer) -> Work:
        entry = yield from self._open_wait(item, self.keys.counted(item.name))
        return self._ended_wait(entry)

    def _open_wait(self, item: Wait | Timer, name: str) -> Work:
        """Open the wait, or look again at one that is open: it may be answered by now."""
        key = self.current(name)
        entry = self.ledger.entries.get(key)
        self.asked.add(key)
        if entry is None:
            entry = Entry(key, item.kind, item.name, item.request, codec.digest(item.request))
            self.ledger.admit(entry)
        elif entry.kind != item.kind:
            raise Permanent(
                f"key {key!r} is a {entry.kind} of this step, and was asked for as a {item.kind}; "
                "give one of them another name"
            )
        elif entry.request != item.request:
            yield partial(self.ledger.remark, entry, "other_request", item.request)
        self.stands(entry)
        if entry.status in (DONE, FAILED):
            return entry
        return (yield partial(self.ledger.wait, entry, item.until))

    def _ended_wait(self, entry: Entry) -> Any:
        """What came. Raises TimedOut where nothing did, and Stop while it may still come."""
        if entry.status not in (DONE, FAILED) or not entry.taken:
            raise Stop(Waits((entry.key,)))
        if entry.status == FAILED:
            raise TimedOut(entry.name)
        return entry.value


def check_signal_name(name: Any) -> None:
    """Raises Permanent if no signal can have that name."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        raise Permanent(f"signal {str(name)[:LONGEST_NAME]!r}: a name has 1 to {LONGEST_NAME} characters")
    if not is_storable(name):
        raise Permanent(f"signal {name!r}: leave out NUL and lone surrogates, which no database column holds")
