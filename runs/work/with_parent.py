"""Processes that end when their parent is gone, also when it was killed and could tell nobody."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

LOOK_SECONDS = 0.5
SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent(parent: int) -> None:
    """End this process with `parent`: the pid of the process that forked it, which may be gone by now.

    Linux tells when the *thread* that forked has ended, so only a main thread may start such a child.
    """
    if LIBC is not None:
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()
    if os.getppid() != parent:
        _end()


def end_forks_with_parent(generations: int) -> None:
    """From here on each forked process ends with the one that forked it, down to so many generations.

    Not further: what a node forks from its thread must outlive that thread.
    """
    line = _Line(generations)
    os.register_at_fork(before=line.before, after_in_child=line.after_in_child)


class _Line:
    def __init__(self, generations: int) -> None:
        self.generations = generations
        self.parent = os.getpid()

    def before(self) -> None:
        self.parent = os.getpid()

    def after_in_child(self) -> None:
        if self.generations > 0:
            self.generations -= 1
            end_with_parent(self.parent)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
