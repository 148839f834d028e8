"""Threads in which an event loop's runs wait for the database, and which give their connections back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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


def and_part(act: Callable[[], T]) -> T:
    """Do something in a thread that nobody keeps, and close the connections it opened."""
    try:
        return act()
    finally:
        connections.close_all()


def _part(together: threading.Barrier) -> None:
    together.wait()
    connections.close_all()
