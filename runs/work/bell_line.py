"""The bell's wait between two looks: on PostgreSQL it ends at once when a run was announced."""

from __future__ import annotations

import time
from typing import Any  # Django's database wrappers have no public type

from django.db import connection

from runs.engine.announce import CHANNEL

LEAST_PAUSE_SECONDS = 0.01  # however many runs are announced


class BellLine:
    """Listens on a connection of its own: django-q2 closes the usual one whenever it queues a message."""

    def __init__(self) -> None:
        self.listener: Any = None

    def wait(self, seconds: float) -> None:
        if connection.vendor != "postgresql":
            time.sleep(seconds)
            return
        if self.listener is None:
            self._listen()
        time.sleep(LEAST_PAUSE_SECONDS)
        with self.listener.wrap_database_errors:
            list(self.listener.connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def _listen(self) -> None:
        self.listener = connection.copy()
        with self.listener.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
