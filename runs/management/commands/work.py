"""The workers of this machine in one command."""

from __future__ import annotations

from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, refuse_unmigrated
from runs.work.supervisor import Supervisor


class Command(OneLineCommand):
    help = (
        "Runs the worker processes and the bell of this machine until SIGTERM or Ctrl-C; a second one kills."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unmigrated()
        Supervisor().watch()
