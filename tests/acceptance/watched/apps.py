"""A worker of q2 that waits on the queue writes its pid to the file of LOCK_HELD_BY while it holds the lock."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.apps import AppConfig


class WatchedConfig(AppConfig):
    name = "tests.acceptance.watched"

    def ready(self) -> None:
        from django_q.signals import post_spawn

        post_spawn.connect(watch, dispatch_uid="watched")


def watch(**_signal: Any) -> None:
    """In a new worker, before its first wait: `Queue.get` reads between taking the lock and letting it go."""
    frame = sys._getframe()
    while "task_queue" not in frame.f_locals:
        frame = frame.f_back
    queue, held_by = frame.f_locals["task_queue"], Path(os.environ["LOCK_HELD_BY"])
    read = queue._recv_bytes

    def read_and_tell() -> bytes:
        held_by.write_text(f"{os.getpid()} ")
        try:
            return read()
        finally:
            held_by.write_text("")

    queue._recv_bytes = read_and_tell
