"""Say what became of an effect that an ended run has in doubt."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, for_operator, given_json, of_operator
from runs.engine.settling import OUTCOMES
from runs.models import Run


class Command(OneLineCommand):
    help = (
        "Settles an effect that an ended run has in doubt, once you know what became of it. A live run asks its "
        "operators in their inbox."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="how you know; it stands in the trail")
        parser.add_argument("key", help="key of the effect, as show prints it")
        parser.add_argument(
            "--outcome",
            required=True,
            choices=OUTCOMES,
            help="what became of it; a repair asks what did not happen, or was given up, anew",
        )
        parser.add_argument(
            "--result", metavar="JSON", default="null", help="what it returned: JSON, @file or -"
        )
        parser.add_argument("--step", type=int, help="where its key is in doubt in several steps")
        of_operator(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        result = given_json(options["result"], "--result")
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            by = for_operator(run, options["by"])
            entry = run.settle(
                by, options["key"], options["outcome"], options["reason"], result, options["step"]
            )
        told = {
            "id": str(run.id),
            "key": entry.key,
            "step": entry.step,
            "status": entry.status,
            "by": by,
            "reason": options["reason"],
        }
        self.stdout.write(
            as_json(told) if options["json"] else f"{run.id} {run.graph}: {entry.key} {entry.status}"
        )
