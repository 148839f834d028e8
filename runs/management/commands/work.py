"""The workers of this machine in one command."""

from __future__ import annotations

from typing import Any  # options are whatever the command line gives

from django.core.management.base import BaseCommand

from runs.work.supervisor import Supervisor


class Command(BaseCommand):
    help = (
        "Runs the worker processes and the bell of this machine until SIGTERM or Ctrl-C; a second one kills."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        Supervisor().watch()
