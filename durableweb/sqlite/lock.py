"""An exclusive lock between all writers of one SQLite file, whatever thread or process they are in.

SQLite's own busy handler polls with growing pauses, so that an unlucky writer can wait many times longer than the
others. flock queues in the kernel. Each lock is an open file description of its own: two threads of one process
exclude each other as two processes do, and a killed holder frees it.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path

_open_locks: weakref.WeakSet[WriteLock] = weakref.WeakSet()


class WriteLock:
    """The writing turn of one connection. Not re-entrant; used by the one thread that uses the connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held = False
        self._descriptor: int | None = None
        _open_locks.add(self)

    def acquire(self, patience_seconds: float) -> bool:
        """True once the lock is held; False if it was not free in time."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.held = True
        except BlockingIOError:
            self._queue_for(patience_seconds)
        return self.held

    def release(self) -> None:
        if self.held and self._descriptor is not None:
            # Unlocked by name, not by closing: a forked child may hold a copy of the descriptor.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.held = False

    def close(self) -> None:
        self.release()
        self._drop_descriptor()

    def _queue_for(self, patience_seconds: float) -> None:
        """Wait in the kernel's queue, in a thread of its own: a blocking flock cannot be given a time limit."""
        place = _Place(self._descriptor)
        self._descriptor = None  # the place owns it until our turn
        threading.Thread(target=place.wait, name="sqlite-write-lock", daemon=True).start()
        try:
            place.reached.wait(patience_seconds)
        except BaseException:  # Ctrl-C while waiting: nobody will ask for a release
            self._descriptor = place.take_or_leave()
            self._drop_descriptor()
            raise
        self._descriptor = place.take_or_leave()
        self.held = self._descriptor is not None

    def _drop_descriptor(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _forget_in_child(self) -> None:
        """After a fork the lock is the parent's: let go of the copy without unlocking it."""
        self._drop_descriptor()
        self.held = False

    def __del__(self) -> None:
        self._drop_descriptor()


class _Place:
    """A place in the queue, which its owner may leave before the lock is reached."""

    def __init__(self, descriptor: int | None) -> None:
        assert descriptor is not None
        self.reached = threading.Event()
        self._descriptor = descriptor
        self._left = False
        self._mutex = threading.Lock()
        _open_places.add(self)

    def wait(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._mutex:
            self.reached.set()
            if self._left:
                os.close(self._descriptor)

    def take_or_leave(self) -> int | None:
        with self._mutex:
            _open_places.discard(self)
            if self.reached.is_set():
                return self._descriptor
            self._left = True
            return None

    def close_in_child(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


_open_places: weakref.WeakSet[_Place] = weakref.WeakSet()


def _forget_all_in_child() -> None:
    for lock in list(_open_locks):
        lock._forget_in_child()
    for place in list(_open_places):
        place.close_in_child()
    _open_places.clear()


os.register_at_fork(after_in_child=_forget_all_in_child)
