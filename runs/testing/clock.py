"""The engine's clock, moved by hand, so that no test waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError

from runs.conf import conf
from runs.engine import clock, sql
from runs.engine.lease import Lease


class Clock:
    """What `moved_clock()` gives: deadlines, leases, undo windows and back-offs all follow it."""

    def __init__(self) -> None:
        self.held: list[Lease] = []  # leases that a living worker would extend while time passes

    def now(self) -> datetime:
        return clock.now()

    def move(self, by: timedelta | float) -> None:
        """Let that much time pass at once; a number is seconds."""
        clock.AHEAD += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def move_to(self, moment: datetime) -> None:
        """Let time pass until `moment`; nothing if it has passed already."""
        left = moment - clock.now()
        if left > timedelta():
            self.move(left)

    def pause(self, seconds: float) -> None:
        """A pause inside a node (between two tries): time passes, and the worker's heartbeat goes on."""
        self.move(seconds)
        for lease in list(self.held):
            with suppress(OperationalError, InterfaceError):  # one that does not arrive is only missed
                self._beat(lease)

    def _beat(self, lease: Lease) -> None:
        began = clock.elapsed()
        moved = sql.heartbeat(lease.worker, [(lease.run_id, lease.fence)], clock.now() + conf.lease)
        if lease.run_id in moved:
            lease.extended(began)


_in_use: Clock | None = None


@contextmanager
def moved_clock() -> Iterator[Clock]:
    """A clock to move within the block; afterwards it is the real one again. A block inside a block shares it."""
    global _in_use
    if _in_use is not None:
        yield _in_use
        return
    before = clock.AHEAD, clock.skip
    _in_use = Clock()
    clock.skip = _in_use.pause
    try:
        yield _in_use
    finally:
        clock.AHEAD, clock.skip = before
        _in_use = None
