"""Erase a run that has ended, with its family."""

from __future__ import annotations

import argparse
import uuid
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, about_a_run, as_json, number_of, person_named, shell
from runs.engine import erasing
from runs.models import Run, Tombstone


class Command(OneLineCommand):
    help = "Erases an ended run and its family: what they were about goes for ever, a tombstone remains."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser, reason="why; it stands on the tombstone")
        parser.add_argument("--by", help="user name of who asked for it; left out, the user of the shell")

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            by = shell()
            if options["by"] is not None:
                by = f"user {person_named(options['by']).get_username()} ({by})"
            run = Run.objects.named(options["run"])
            stone = run.erase(options["reason"], by)
            while stone.erased_at is None:  # a long family: what a worker would go on with
                erasing.go_on(run.root)
                stone = Tombstone.objects.get(pk=stone.pk)
        family = Run.objects.filter(root=run.root).count()
        told = {"id": str(run.root), "runs": family, "by": stone.by, "at": stone.at, "reason": stone.reason}
        told["forks"] = [str(fork) for fork in forks_of(run.root)]
        if options["json"]:
            self.stdout.write(as_json(told))
            return
        left = f"; {number_of(len(told['forks']), 'fork')} of it stay: " if told["forks"] else ""
        self.stdout.write(
            f"{run.root} {run.graph} erased: {number_of(family, 'run')}{left}{', '.join(told['forks'])}"
        )


def forks_of(top: uuid.UUID) -> list[uuid.UUID]:
    """Runs that were forked from the family and hold what they took over from it: they are erased by themselves."""
    family = Run.objects.filter(root=top).values("pk")
    found = Run.objects.filter(origin__in=family, tombstone=None).order_by("pk")
    return list(found.values_list("pk", flat=True))
