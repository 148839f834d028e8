"""Let a failed or cancelled run go on."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, for_operator, given_json, of_operator
from runs.core.codec_loose import restore_loosely
from runs.core.graph import END
from runs.models import Run
from runs.models.repairs import UNCHANGED


class Command(OneLineCommand):
    help = (
        "Repairs a failed or cancelled run: it executes its node anew, or goes on after it or at another one."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands in the trail")
        way = parser.add_mutually_exclusive_group(required=True)
        way.add_argument("--retry", action="store_true", help="execute the node where it stands anew")
        way.add_argument("--skip", action="store_true", help="go on after the node where it stands")
        way.add_argument("--move", metavar="NODE", help="go on at this node of its version")
        parser.add_argument(
            "--to", metavar="NODE", help="with --skip: which node follows, or END, where several may"
        )
        parser.add_argument("--state", metavar="JSON", help="a whole state for it: JSON, @file or -")
        of_operator(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        state = UNCHANGED if options["state"] is None else given_json(options["state"], "--state")
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            by, reason = for_operator(run, options["by"]), options["reason"]
            if state is not UNCHANGED:
                state = restore_loosely(state)
            if options["to"] is not None and not options["skip"]:
                self.refuse("--to: only with --skip; with --move, name the node there.")
            if options["retry"]:
                run.retry(by, reason, state)
            elif options["skip"]:
                run.skip(by, reason, state, END if options["to"] == "END" else options["to"])
            else:
                run.move(by, reason, options["move"], state)
        told = {
            "id": str(run.id),
            "status": run.status,
            "node": run.node,
            "step": run.step,
            "by": by,
            "reason": reason,
        }
        place = "" if run.ended else f", at {run.node}"
        self.stdout.write(as_json(told) if options["json"] else f"{run.id} {run.graph} {run.status}{place}")
