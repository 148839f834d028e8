"""Check that the trail of runs is what was written."""

from __future__ import annotations

import argparse
import json
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs.command_line import OneLineCommand, number_of, one_line
from runs.engine.verify import first_bad_row
from runs.errors import Refusal
from runs.models import Run, Tombstone


class Command(OneLineCommand):
    help = "Computes every digest again, and names the first row of a run that was changed, removed or moved."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "run", nargs="?", help="id or last digits of one run; left out, every run is verified"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, run: str | None, **options: Any) -> None:
        try:
            runs = [Run.objects.named(run)] if run is not None else Run.objects.order_by("pk").iterator()
        except Refusal as refusal:
            raise CommandError(one_line(refusal.message)) from None
        verified, bad = 0, {}
        for one in runs:
            verified += 1
            if (fault := first_bad_row(one)) is not None:
                bad[str(one.pk)] = fault
        erased = (
            Tombstone.objects.filter(run=Run.objects.named(run))
            if run is not None
            else Tombstone.objects.all()
        )
        self._say(verified, erased.count(), bad, options["json"])

    def _say(self, verified: int, erased: int, bad: dict[str, str], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"verified": verified, "erased": erased, "bad": bad}))
        else:
            for run, fault in bad.items():
                self.stdout.write(f"run {run}: {fault}")
            of_them = f" ({erased} erased: what remains of them)" if erased else ""
            self.stdout.write(f"{number_of(verified, 'run')} verified{of_them}, {len(bad)} with a fault")
        if bad:
            raise CommandError(f"The trail of {len(bad)} of {verified} runs does not hold.")
