"""How many shifts may run at once in one cluster, kept by the kernel: a killed process frees its place."""

from __future__ import annotations

import fcntl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from runs.conf import conf

LOOK_SECONDS = 0.02


def most_shifts() -> int:
    """One worker process stays free, so that other tasks get their turn."""
    return max(conf.workers - 1, 1)


class ShiftSlots:
    """Made before the workers are forked; each byte of a file without a name is one place.

    POSIX record locks belong to a process, are not inherited by a fork, and end with it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.file = tempfile.TemporaryFile()

    @contextmanager
    def take(self, patience_seconds: float) -> Iterator[bool]:
        """Whether a place was free, for the time of the block; a process takes one at a time."""
        until = time.monotonic() + patience_seconds
        while (place := self._free_place()) is None and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        try:
            yield place is not None
        finally:
            if place is not None:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, place)

    def _free_place(self) -> int | None:
        for place in range(self.most):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except OSError:
                continue
            return place
        return None
