"""What runs in the workers of django-q2: a shift for each bell."""

from __future__ import annotations

import logging
import os
import signal
from types import FrameType

from runs.engine.shift import Shift
from runs.work.shift_slots import ShiftSlots, most_shifts

log = logging.getLogger(__name__)

STOP_SIGNAL = signal.SIGUSR1  # from the supervisor, to a worker: hand back, then end
PATIENCE_SECONDS = 0.5  # a shift that just ended is about to free its place

_slots: ShiftSlots | None = None
_stopping = False
_current: Shift | None = None


def shift(bell: str) -> int:
    """Drive what is due; the number of steps done. A bell too many, or one while stopping, does nothing."""
    global _current
    if _slots is None:
        return _work(Shift(bell=bell))
    with _slots.take(PATIENCE_SECONDS) as free:
        if not free or _stopping:
            return 0
        _current = Shift(bell=bell)
        try:
            return _work(_current)
        finally:
            if _current.lost_threads:
                log.warning("Worker process %s ends, for a thread of it is lost", os.getpid())
                os._exit(1)  # an ordinary end would wait for that thread; the sentinel starts another worker
            _current = None


def prepare_cluster() -> None:
    """In qcluster's own process, before it forks its workers."""
    global _slots
    _slots = ShiftSlots(most_shifts())
    signal.signal(STOP_SIGNAL, _stop)


def _work(one: Shift) -> int:
    if _stopping:
        one.stopping.set()
    return one.work()


def _stop(number: int, frame: FrameType | None) -> None:
    global _stopping
    _stopping = True
    if _current is not None:
        _current.stopping.set()
