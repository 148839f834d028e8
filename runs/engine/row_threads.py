"""Threads beside an event loop: in some its runs wait for the database, in others the functions of authors run."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar  # what the authors' functions take and return

from django.db import connections

T = TypeVar("T")


class RowThreads(ThreadPoolExecutor):
    """A pool of exactly `size` threads; `close()` closes the connection of each before it ends."""

    def __init__(self, size: int) -> None:
        super().__init__(size, thread_name_prefix="rows")
        self.size = size

    def close(self) -> None:
        together = threading.Barrier(self.size)  # so that each thread takes exactly one
        for done in [self.submit(_part, together) for _ in range(self.size)]:
            done.result()
        self.shutdown()


class CallThreads(ThreadPoolExecutor):
    """Each gives back the connections that its function opened. None can be stopped: one that does not come back in its
    time is lost."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="calls")
        self._until: dict[int, float] = {}  # by thread, monotonic: when what it does is to be over
        self.lost = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """As the loop's default executor: what an author hands to a thread, nobody knows how long it may take."""
        return self.within(math.inf, partial(fn, *args, **named))

    def within(self, seconds: float, act: Callable[[], T]) -> Future[T]:
        return super().submit(self._do, seconds, act)

    def under_way(self, *, bounded: bool = False) -> int:
        """How many have neither come back nor are lost; `bounded`: of those whose time will be over."""
        return sum(not bounded or until < math.inf for until in list(self._until.values()))

    def count_lost(self) -> int:
        """How many were lost since the last look."""
        over = [thread for thread, until in list(self._until.items()) if until < time.monotonic()]
        lost = sum(self._until.pop(thread, None) is not None for thread in over)
        self.lost += lost
        return lost

    def _do(self, seconds: float, act: Callable[[], T]) -> T:
        self._until[threading.get_ident()] = time.monotonic() + seconds
        try:
            return act()
        finally:
            self._until.pop(threading.get_ident(), None)
            connections.close_all()


class Threads:
    """Both kinds, for the runs of one event loop."""

    def __init__(self, rows: int) -> None:
        self.rows, self.calls = RowThreads(rows), CallThreads()

    def in_row_thread(self, act: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self.rows, act)

    def in_call_thread(self, seconds: float, act: Callable[[], T]) -> asyncio.Future[T]:
        """Who waits for it may be cancelled; the thread goes on all the same."""
        return asyncio.wrap_future(self.calls.within(seconds, act))

    def close(self) -> None:
        """Wait for the calls that are under way, unless some are lost."""
        self.calls.shutdown(wait=not self.calls.lost, cancel_futures=True)
        self.rows.close()


def _part(together: threading.Barrier) -> None:
    together.wait()
    connections.close_all()
