"""Send a signal to a run."""

from __future__ import annotations

import argparse
import getpass
from typing import Any  # options are whatever the command line gives

from django.core.management.base import BaseCommand

from runs.command_line import as_json, given_json, one_line_errors, visible
from runs.models import Run


class Command(BaseCommand):
    help = "Sends a signal to a live run. It is kept until a node waits for one of that name."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", help="its id, or the last six digits of it")
        parser.add_argument("name", help="what the node waits for")
        parser.add_argument("--payload", default="null", metavar="JSON|@file|-", help="what it says")
        parser.add_argument("--key", help="accept it once under this key")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        payload = given_json(options["payload"], "--payload")
        with one_line_errors():
            run = Run.objects.named(options["run"])
            by = f"shell of {getpass.getuser()}"
            signal = run.signal(options["name"], payload, key=options["key"], by=by)
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
