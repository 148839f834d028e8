"""What several people or workers do at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

PATIENCE_SECONDS = 60.0


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Do all of them at the same moment, each in a thread with its own connection; results or exceptions, in order."""
    together = threading.Barrier(len(acts))
    ends: list[Any] = [None] * len(acts)

    def do(place: int, act: Callable[[], Any]) -> None:
        try:
            together.wait(PATIENCE_SECONDS)
            ends[place] = act()
        except Exception as error:
            ends[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=do, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "a thread is stuck"
    return ends
