"""The engine's settings, read from settings.DURABLEWEB when they are needed (docs/settings.md)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings


class Conf:
    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def lease_seconds(self) -> float:
        return float(settings.DURABLEWEB["lease_seconds"])

    @property
    def heartbeat_seconds(self) -> float:
        return float(settings.DURABLEWEB["heartbeat_seconds"])

    @property
    def shift_runs(self) -> int:
        return int(settings.DURABLEWEB["shift_runs"])

    @property
    def shift_async_runs(self) -> int:
        return int(settings.DURABLEWEB["shift_async_runs"])

    @property
    def grace_seconds(self) -> float:
        return float(settings.DURABLEWEB["grace_seconds"])

    @property
    def undo_seconds(self) -> float:
        return float(settings.DURABLEWEB["undo_seconds"])

    @property
    def archive_after(self) -> timedelta:
        """How long after its end a family of runs is archived, at most a century; nothing stands for never."""
        return timedelta(days=min(int(settings.DURABLEWEB["archive_after_days"]), 36_500))

    @property
    def blob_bytes(self) -> int:
        return int(settings.DURABLEWEB["blob_bytes"])

    @property
    def value_limit_bytes(self) -> int:
        return int(settings.DURABLEWEB["value_limit_bytes"])

    @property
    def workers(self) -> int:
        return int(settings.DURABLEWEB["workers"])

    @property
    def tick_token(self) -> str:
        return str(settings.DURABLEWEB["tick_token"])

    @property
    def secrets_dir(self) -> str:
        return str(settings.DURABLEWEB["secrets_dir"])

    @property
    def secrets_from(self) -> str:
        return str(settings.DURABLEWEB["secrets_from"])

    @property
    def home(self) -> Path:
        return Path(settings.DURABLEWEB["home"])


conf = Conf()
