"""One bounded slice of work without worker processes, as cron or a platform's scheduler wants it."""

from __future__ import annotations

import argparse
import json
import signal
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs.command_line import OneLineCommand, number_of, refuse_unmigrated
from runs.engine.shift import Shift
from runs.work.tick import SECONDS


class Command(OneLineCommand):
    help = "Claims and drives due runs in this process, for a bounded time, and ends when nothing is due."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--seconds", type=float, default=SECONDS, help="at most so long (default %(default)g)"
        )
        parser.add_argument("--steps", type=int, help="at most so many steps")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, seconds: float, steps: int | None, **options: Any) -> None:
        if not 0 < seconds < float("inf"):
            raise CommandError(f"--seconds {seconds:g}: give a number above 0.")
        if steps is not None and steps < 1:
            raise CommandError(f"--steps {steps}: give 1 or more, or leave it out.")
        refuse_unmigrated()
        shift = Shift(seconds=seconds, steps=steps, linger=0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: shift.stopping.set())
        self._say(shift.work(), options["json"])

    def _say(self, steps: int, as_json: bool) -> None:
        self.stdout.write(json.dumps({"steps": steps}) if as_json else f"{number_of(steps, 'step')} done")
