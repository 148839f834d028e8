"""Start a run."""

from __future__ import annotations

import argparse
import time
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs.command_line import OneLineCommand, as_json, given_json, one_line, person_named
from runs.engine.starting import start
from runs.models import Run

POLL_SECONDS = 0.1


class Command(OneLineCommand):
    help = (
        "Starts a run of a graph, or finds the one that was started under the same key with the same input."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("graph", help="name of the graph")
        parser.add_argument(
            "--input", default="{}", metavar="JSON|@file|-", help="the first state (default {})"
        )
        parser.add_argument("--key", help="start at most one run of this graph under this key")
        parser.add_argument("--by", metavar="USER", help="user name of who asks for it")
        parser.add_argument("--wait", action="store_true", help="until it has ended or waits for someone")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        given = given_json(options["input"], "--input")
        by = person_named(options["by"]) if options["by"] is not None else None
        with self.one_line_errors():
            run = start(options["graph"], given, key=options["key"], by=by)
        if options["wait"]:
            run = self._wait(run)
        told = {"id": str(run.id), "graph": run.graph, "version": run.version, "status": run.status}
        told |= {"error": run.error, "error_kind": run.error_kind} if run.error_kind else {}
        self.stdout.write(as_json(told) if options["json"] else f"{run.id} {run.graph} {run.status}")
        if run.status == "failed":
            raise CommandError(f"run {run.id} failed ({run.error_kind}): {one_line(run.error)}")

    def _wait(self, run: Run) -> Run:
        """A worker must be running: this command only looks."""
        while not run.ended and run.status != "waiting":
            time.sleep(POLL_SECONDS)
            run.refresh_from_db()
        return run
