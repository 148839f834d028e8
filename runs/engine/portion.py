"""How much of long work one transaction does, so that nobody waits long for what it holds.

A run's row is what people, signals, verbs and workers wait for, and on SQLite every writer waits for every other. So
long work is done in portions by time: how many of it go into a moment depends on the machine, on what else it does and
on the rows, and the last portion tells best.
"""

from __future__ import annotations

from time import monotonic

MOMENT_SECONDS = 0.05  # how long one transaction may hold its locks
FIRST = 10  # rows; of work of which nothing is known yet
GROWS = 2  # at most that many times as many as the last time


class Portion:
    """For one piece of long work; `most` is the largest portion, however quick the machine is."""

    __slots__ = ("_began", "most", "size")

    def __init__(self, most: int) -> None:
        self.most, self.size, self._began = most, min(FIRST, most), 0.0

    def begin(self) -> int:
        """Called when the locks are held; how many to do now."""
        self._began = monotonic()
        return self.size

    def end(self) -> None:
        """Called after the commit."""
        self.size = fitting(self.size, monotonic() - self._began, self.most)


def fitting(size: int, seconds: float, most: int) -> int:
    """How many go into a moment, where `size` of them took that long; at least one, or nothing would go on."""
    grown = size * GROWS
    if seconds * GROWS > MOMENT_SECONDS:
        grown = int(size * MOMENT_SECONDS / seconds)
    return max(1, min(grown, most))
