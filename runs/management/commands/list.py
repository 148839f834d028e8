"""List runs."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs import registry
from runs.command_line import OneLineCommand, as_json, one_line
from runs.core.words import is_storable
from runs.models import Run
from runs.models.statuses import STATUSES

MOST = 10_000


class Command(OneLineCommand):
    help = "Lists runs, the newest first."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--status", choices=STATUSES)
        parser.add_argument("--graph", help="only runs of this graph")
        parser.add_argument("--limit", type=int, default=50, help="at most so many (default %(default)s)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["limit"] <= MOST:
            raise CommandError(f"--limit {options['limit']}: give 1 to {MOST}.")
        runs = Run.objects.order_by("-id")
        if options["status"]:
            runs = runs.filter(status=options["status"])
        if options["graph"] is not None:
            runs = runs.filter(graph=options["graph"]) if is_storable(options["graph"]) else runs.none()
        found = list(runs[: options["limit"]])
        if options["json"]:
            self.stdout.write(as_json({"runs": [_told(run) for run in found]}))
            return
        for run in found:
            self.stdout.write(f"{run.id}  {run.status:<10}  {run.graph}  at {run.node}, step {run.step}")
        if not found:
            self.stdout.write(_none_of(options["graph"]))


def _none_of(graph: str | None) -> str:
    known = {one.name for one in registry.served()}
    if graph is None or graph in known:
        return "No such runs. `manage.py start GRAPH` makes one."
    names = ", ".join(sorted(known)) or "none"
    return one_line(f"No such runs, and no graph {graph!r} is served here. Known graphs: {names}.")


def _told(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "graph": run.graph,
        "version": run.version,
        "status": run.status,
        "node": run.node,
        "step": run.step,
        "key": run.key,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
    }
