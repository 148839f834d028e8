"""Erase a run that has ended, with its family."""

from __future__ import annotations

import argparse
import getpass
from typing import Any  # options are whatever the command line gives

from django.core.management.base import BaseCommand

from runs.command_line import as_json, one_line_errors, person_named
from runs.engine import erasing
from runs.models import Run, Tombstone


class Command(BaseCommand):
    help = "Erases an ended run and its family: what they were about goes for ever, a tombstone remains."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", help="its id, or the last six digits of it")
        parser.add_argument("--reason", required=True, help="why; it stands on the tombstone")
        parser.add_argument("--by", help="user name of who asked for it; left out, the user of the shell")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        with one_line_errors():
            shell = f"shell of {getpass.getuser()}"
            by = f"user {person_named(options['by']).get_username()} ({shell})" if options["by"] else shell
            run = Run.objects.named(options["run"])
            stone = run.erase(options["reason"], by)
            while stone.erased_at is None:  # a long family: what a worker would go on with
                erasing.go_on(run.root)
                stone = Tombstone.objects.get(pk=stone.pk)
        family = Run.objects.filter(root=run.root).count()
        told = {"id": str(run.root), "runs": family, "by": stone.by, "at": stone.at, "reason": stone.reason}
        self.stdout.write(
            as_json(told) if options["json"] else f"{run.root} {run.graph} erased: {family} runs"
        )
