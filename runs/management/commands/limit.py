"""The limits of a queue."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import BaseCommand, CommandError

from runs.command_line import as_json, one_line_errors, visible
from runs.core.words import is_storable
from runs.models import QueueLimit
from runs.models.limits import NUMBERS


class Command(BaseCommand):
    help = "Sets how many runs of a queue are driven at once and start in a period, or shows what is set."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "queue", nargs="?", default="", help="name of the queue; without it all are shown"
        )
        parser.add_argument("--at-once", type=int, help="runs driven at a time")
        parser.add_argument("--at-once-a-lane", type=int, help="the same of each lane")
        parser.add_argument("--starts", type=int, help="runs that begin in a period")
        parser.add_argument("--starts-a-lane", type=int, help="the same of each lane")
        parser.add_argument("--per-seconds", type=int, help="how long the period is (default 60)")
        parser.add_argument("--lift", action="store_true", help="no limit any more")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, queue: str, lift: bool, **options: Any) -> None:
        numbers = {name: options[name] for name in NUMBERS if options[name] is not None}
        if not queue and (numbers or lift):
            raise CommandError("Name the queue that is meant.")
        if not is_storable(queue):
            raise CommandError(f"There is no queue {visible(queue)}.")
        if lift and not QueueLimit.objects.filter(queue=queue).delete()[0]:
            raise CommandError(f"Queue {visible(queue)} has no limit.")
        if numbers and not lift:
            with one_line_errors():
                QueueLimit.objects.put(queue, **numbers)
        self._show(
            QueueLimit.objects.filter(queue=queue) if queue else QueueLimit.objects.all(), options["json"]
        )

    def _show(self, limits: Any, json: bool) -> None:
        told = [
            {"queue": one.queue} | {name: getattr(one, name) for name in NUMBERS}
            for one in limits.order_by("queue")
        ]
        if json:
            self.stdout.write(as_json({"limits": told}))
            return
        for one in told:
            numbers = ", ".join(
                f"{name.replace('_', ' ')} {number}"
                for name, number in one.items()
                if number and name != "queue"
            )
            self.stdout.write(visible(f"{one['queue']}: {numbers}"))
        if not told:
            self.stdout.write("No limit.")
