"""Keep a run and its family from being erased or archived, or let go of them again."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, shell
from runs.models import Run


class Command(OneLineCommand):
    help = "Keeps a run and its family: they are neither erased nor archived until they are released."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands on the run's page")
        parser.add_argument("--release", action="store_true", help="let it be erased and archived again")

    def handle(self, *args: Any, release: bool, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            act = run.release_keep if release else run.keep
            act(options["reason"], shell())
        told = {"id": str(run.id), "family": str(run.root), "kept": not release}
        state = "released" if release else "kept"
        self.stdout.write(
            as_json(told) if options["json"] else f"{run.id} {run.graph} and its family: {state}"
        )
