"""Begin a new run where another one stood."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, for_operator, number_of, of_operator
from runs.engine.forking import would_send, would_start
from runs.models import Run


class Command(OneLineCommand):
    help = "Forks a run: a new one begins with its state at a checkpoint, and goes on with keys of its own."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands in the trail")
        parser.add_argument("--at", type=int, metavar="SEQ", help="which checkpoint; left out, the latest")
        parser.add_argument(
            "--look", action="store_true", help="only say which writes it would make again, and fork nothing"
        )
        of_operator(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            by = for_operator(run, options["by"])
            again = [{"step": one.step, "key": one.key} for one in would_send(run, options["at"])]
            anew = [{"step": one.step, "key": one.key} for one in would_start(run, options["at"])]
            made = None if options["look"] else run.fork(by, options["reason"], options["at"])
        told = {
            "id": None if made is None else str(made.id),
            "from": str(run.id),
            "at": run.seq if options["at"] is None else options["at"],
            "makes_again": again,
            "starts_again": anew,
        }
        if options["json"]:
            self.stdout.write(as_json(told))
            return
        keys = ", ".join(f"step {one['step']} {one['key']}" for one in again)
        says = f"it makes {number_of(len(again), 'write')} again{': ' if keys else ''}{keys}"
        if anew:
            starts = ", ".join(f"step {one['step']} {one['key']}" for one in anew)
            says += f"; it starts again what began as {starts}, with all that this does"
        head = f"{run.id} is not forked" if made is None else f"{made.id} {made.graph} forked from {run.id}"
        self.stdout.write(f"{head}; {says}")
