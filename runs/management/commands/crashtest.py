"""Does a graph keep the promises when its worker is killed?"""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.conf import settings
from django.core.management.base import CommandError

from runs import registry
from runs.command_line import OneLineCommand, as_json, given_json, one_line, visible
from runs.core.graph import Graph
from runs.engine.starting import prepare
from runs.testing import throw_away


class Command(OneLineCommand):
    help = (
        "Runs a graph once unharmed, then once for each durable boundary at which its process is killed (SIGKILL), in a"
        " database of its own that is thrown away. The tools are really called."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("graph", help="name of the graph; its newest version is tried")
        parser.add_argument(
            "--input", default="{}", metavar="JSON|@file|-", help="the first state (default {})"
        )
        parser.add_argument(
            "--kills", type=int, help="at most so many, spread over the boundaries (default: at each)"
        )
        parser.add_argument(
            "--answers",
            default="{}",
            metavar="JSON|@file|-",
            help="what people and other systems say, by key; other questions are approved as proposed",
        )
        parser.add_argument(
            "--stand-ins",
            default="",
            metavar="MODULE:NAME",
            help="a dict from names of tools to functions that are called instead",
        )
        parser.add_argument("--really", action="store_true", help="call writes also where debug is off")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["kills"] is not None and options["kills"] < 1:
            raise CommandError(f"--kills {options['kills']}: give 1 or more, or leave it out.")
        asked = {name: options[name] for name in ("graph", "kills", "stand_ins")}
        asked |= {name: given_json(options[name], f"--{name}") for name in ("input", "answers")}
        _check_answers(asked["answers"])
        with self.one_line_errors():
            graph = registry.get(options["graph"])
            prepare(graph, asked["input"])
        try:
            _check_writes(graph, options["stand_ins"], options["really"])
            told = throw_away.trial(asked)
        except throw_away.Failed as failed:
            raise CommandError(one_line(f"{graph.name} could not be tried: {failed}")) from failed
        if options["json"]:
            self.stdout.write(as_json(told))
        else:
            for line in _lines(told):
                self.stdout.write(visible(line))
        if not told["ok"]:
            raise CommandError(one_line(f"A promise is broken: {told['broken']}"))


def _check_answers(answers: Any) -> None:
    """They are by key, each what a decision or a signal says, or null to let the deadline pass."""
    for key, said in answers.items() if isinstance(answers, dict) else [("", answers)]:
        if not key or said is not None and not isinstance(said, dict):
            raise CommandError('--answers: write an object by key, such as {"send?": {"verdict": "reject"}}.')


def _check_writes(graph: Graph, place: str, really: bool) -> None:
    """Where debug is off, the tools are those of a real installation, with its secrets."""
    try:
        replaced = throw_away.stand_ins(place) if place else {}
    except throw_away.Failed as failed:
        raise CommandError(one_line(f"--stand-ins: {failed}")) from failed
    writes = sorted({made.name for made in registry.tools_of(graph) if made.write} - replaced.keys())
    if writes and not (really or settings.DEBUG or settings.TESTING):
        raise throw_away.Failed(
            f"{', '.join(writes)} would really be called, once for each kill. Give --stand-ins, or say --really."
        )


def _lines(told: dict[str, Any]) -> list[str]:
    done = ", ".join(f"{tool} x {times}" for tool, times in sorted(told["effects"].items())) or "none"
    return [
        f"{told['graph']} version {told['version']}: {told['status']}",
        f"boundaries  {len(told['boundaries'])}",
        f"kills       {told['kills']}",
        f"effects     {done}",
        f"duplicates  {told['duplicates']}",
        f"repeated    {told['repeated']}, of which the provider knew the key",
        f"in doubt    {told['in_doubt']}",
        f"outside     {told['outside']} acts of nodes outside of tools",
    ]
