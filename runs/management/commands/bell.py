"""The bell as a process of its own."""

from __future__ import annotations

import argparse
import signal
from contextlib import suppress
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand
from runs.work.bell import ANEW_SIGNAL, Bell
from runs.work.with_parent import end_with_parent


class Command(OneLineCommand):
    help = "Rings for the cluster whenever a run is due; `manage.py work` starts it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--report",
            action="store_true",
            help="print after each look for how many seconds no bell was answered",
        )
        parser.add_argument("--queue", metavar="NAME", help="where it rings: the --name of its qcluster")
        parser.add_argument("--with-parent", type=int, metavar="PID", help="end when this parent is gone")

    def handle(
        self, *args: Any, report: bool, queue: str | None, with_parent: int | None, **options: Any
    ) -> None:
        if with_parent is not None:
            end_with_parent(with_parent)
        bell = Bell(queue)
        signal.signal(ANEW_SIGNAL, lambda *_: bell.forget())
        with suppress(KeyboardInterrupt):
            bell.watch(self._print if report else None)

    def _print(self, seconds: float) -> None:
        self.stdout.write(f"{seconds:.1f}")
        self.stdout.flush()
