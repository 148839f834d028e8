"""The event loop of a shift's async runs, in a thread of its own; which node blocks it, if one does."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from types import CodeType

from runs.engine.row_threads import Threads

TURNS_WITHIN_SECONDS = 3.0  # a loop that nobody blocks, however busy it and the machine are


class EventLoop:
    """Begun when the first run needs it."""

    def __init__(self) -> None:
        self.threads = Threads(rows=4)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turned_at = 0.0  # monotonic, as the next
        self._asked_at: float | None = None

    def begin(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(self.threads.calls)
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="async nodes", daemon=True)
            self._thread.start()
        return self._loop

    def has_stood_since(self, moment: float) -> bool:
        """Whether it was asked to turn, and has not, since that moment of the monotonic clock."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self.begin().call_soon_threadsafe(self._turn)
        return self._turned_at < moment and time.monotonic() - self._asked_at > TURNS_WITHIN_SECONDS

    def _turn(self) -> None:
        self._turned_at, self._asked_at = time.monotonic(), None

    def who_runs(self, method: CodeType) -> object | None:
        """The object of whose method what runs now is a part. None where that is a task which the method has begun."""
        frame = sys._current_frames().get(self._thread.ident)
        while frame is not None and frame.f_code is not method:
            frame = frame.f_back
        return frame.f_locals["self"] if frame is not None else None

    def end(self, grace_seconds: float) -> int:
        """How many threads do not come back: the loop's own, and those that authors have begun."""
        left, calls = 0, self.threads.calls
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(grace_seconds)
            left += self._thread.is_alive()
        until = time.monotonic() + grace_seconds
        while calls.under_way() and time.monotonic() < until:
            time.sleep(0.01)
        calls.lost += calls.under_way()
        left += calls.under_way()
        self.threads.close()
        return left


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Until it is stopped; then what it was given since ends as well."""
    try:
        loop.run_forever()
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        loop.close()
