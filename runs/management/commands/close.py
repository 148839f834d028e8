"""Put a failed run aside."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, for_operator, of_operator
from runs.models import Run


class Command(OneLineCommand):
    help = (
        "Closes a failed run: it stays failed and waits for no operator any more. A repair takes it up again."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands in the trail")
        of_operator(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            by = for_operator(run, options["by"])
            run.close(by, options["reason"])
        told = {
            "id": str(run.id),
            "status": run.status,
            "closed_at": run.closed_at,
            "by": by,
            "reason": options["reason"],
        }
        self.stdout.write(as_json(told) if options["json"] else f"{run.id} {run.graph} {run.status}, closed")
