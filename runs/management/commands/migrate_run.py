"""Take a run to a newer version of its graph now."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, shell
from runs.models import Run


class Command(OneLineCommand):
    help = "Migrates a live run now, whoever drives it, to the newest version that this code can take it to."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands in the trail")

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            before = run.version
            run.migrate(by=shell(), reason=options["reason"])
        told = {
            "id": str(run.id),
            "status": run.status,
            "from": before,
            "version": run.version,
            "node": run.node,
            "reason": options["reason"],
        }
        line = f"{run.id} {run.graph} version {before} -> {run.version}, at {run.node}"
        self.stdout.write(as_json(told) if options["json"] else line)
