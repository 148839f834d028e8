"""Cancel a run."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, shell
from runs.models import Run


class Command(OneLineCommand):
    help = "Cancels a live run, whoever drives it. Open questions close; an open write is left in doubt."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands in the trail")
        parser.add_argument(
            "--compensate", action="store_true", help="first undo what it did, as its tools declare"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            run.cancel(shell(), options["reason"], compensate=options["compensate"])
        told = {"id": str(run.id), "status": run.status, "ending": run.ending, "reason": options["reason"]}
        now = f"{run.status}, undoing what it did; then {run.ending}" if run.ending else run.status
        self.stdout.write(as_json(told) if options["json"] else f"{run.id} {run.graph} {now}")
