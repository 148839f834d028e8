"""The stop switch of a graph."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs import registry
from runs.command_line import OneLineCommand, as_json, number_of, shell
from runs.core.words import is_storable
from runs.models import GraphStop, Run


class Command(OneLineCommand):
    help = "From now on no worker takes a run of the graph, within two seconds; what is being driven goes on."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("graph", help="name of the graph")
        parser.add_argument("--reason", default="", help="why; who looks sees it")
        parser.add_argument("--lift", action="store_true", help="let its runs go on")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, graph: str, reason: str, lift: bool, **options: Any) -> None:
        with self.one_line_errors():
            if lift:
                GraphStop.objects.lift(graph)
            else:
                _must_be_known(graph)
                GraphStop.objects.stop(graph, shell(), reason)
        told = {"graph": graph, "stopped": not lift, "live": Run.objects.live().filter(graph=graph).count()}
        state = "goes on" if lift else "is stopped"
        self.stdout.write(
            as_json(told) if options["json"] else f"{graph} {state}: {number_of(told['live'], 'live run')}"
        )


def _must_be_known(graph: str) -> None:
    """A slip of the pen would stop nothing, and say that it did."""
    known = {one.name for one in registry.served()}
    has_run = is_storable(graph) and Run.objects.filter(graph=graph).exists()
    if graph not in known and not has_run:
        raise CommandError(
            f"There is no graph {graph!r}. Known graphs: {', '.join(sorted(known)) or 'none'}."
        )
