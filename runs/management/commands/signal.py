"""Send a signal to a run."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import (
    OneLineCommand,
    about_a_run,
    as_json,
    given_json,
    shell,
    visible,
)
from runs.models import Run


class Command(OneLineCommand):
    help = "Sends a signal to a live run. It is kept until a node waits for one of that name."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser)
        parser.add_argument("name", help="what the node waits for")
        parser.add_argument("--payload", default="null", metavar="JSON|@file|-", help="what it says")
        parser.add_argument("--key", help="accept it once under this key")

    def handle(self, *args: Any, **options: Any) -> None:
        payload = given_json(options["payload"], "--payload")
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
            signal = run.signal(options["name"], payload, key=options["key"], by=shell())
            run.refresh_from_db()
        told = {
            "run": str(run.id),
            "signal": signal.pk,
            "name": signal.name,
            "key": signal.key,
            "by": signal.by,
            "at": signal.at,
            "status": run.status,
        }
        line = f"{run.id} {run.graph} {run.status}: signal {visible(signal.name)} is in its mailbox"
        self.stdout.write(as_json(told) if options["json"] else line)
