"""The limits of a queue."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs.command_line import OneLineCommand, as_json, one_line, visible
from runs.core.words import is_storable
from runs.models import QueueLimit
from runs.models.limits import NUMBERS


class Command(OneLineCommand):
    help = "Sets how many runs of a queue are driven at once and start in a period, or shows what is set."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("queue", nargs="?", help="name of the queue; without it all are shown")
        parser.add_argument("--at-once", type=int, help="runs driven at a time")
        parser.add_argument("--at-once-a-lane", type=int, help="the same of each lane")
        parser.add_argument("--starts", type=int, help="runs that begin in a period")
        parser.add_argument("--starts-a-lane", type=int, help="the same of each lane")
        parser.add_argument("--per-seconds", type=int, help="how long the period is (default 60)")
        parser.add_argument("--lift", action="store_true", help="no limit any more")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, queue: str | None, lift: bool, **options: Any) -> None:
        numbers = {name: options[name] for name in NUMBERS if options[name] is not None}
        if queue is None and (numbers or lift):
            raise CommandError("Name the queue that is meant.")
        if queue is not None and not (queue.strip() and is_storable(queue)):
            raise CommandError(one_line(f"There is no queue {queue!r}."))
        if lift and not QueueLimit.objects.filter(queue=queue).delete()[0]:
            raise CommandError(one_line(f"Queue {queue} has no limit."))
        if numbers and not lift:
            with self.one_line_errors():
                QueueLimit.objects.put(queue, **numbers)
        self._show(queue, options["json"])

    def _show(self, queue: str | None, json: bool) -> None:
        limits = QueueLimit.objects.all() if queue is None else QueueLimit.objects.filter(queue=queue)
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
            self.stdout.write("No limit." if queue is None else one_line(f"Queue {queue} has no limit."))
