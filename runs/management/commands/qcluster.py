"""django-q2's own command, so that no process of the cluster outlives its parent."""

from __future__ import annotations

import argparse
import sys
from typing import Any  # options are whatever the command line gives

from django_q.conf import Conf
from django_q.management.commands import qcluster

from runs.command_line import OneLineCommand
from runs.work import tasks
from runs.work.with_parent import end_forks_with_parent, end_with_parent

GENERATIONS = 2  # the sentinel; then its workers, monitor and pusher


class Command(OneLineCommand, qcluster.Command):
    help = "Starts the pool of worker processes; `manage.py work` does it for you, and rings the bells."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--with-parent", type=int, metavar="PID", help="end when this parent is gone")
        parser.add_argument(
            "--on-word", action="store_true", help="begin when a line comes from standard input"
        )

    def handle(
        self, *args: Any, with_parent: int | None = None, on_word: bool = False, **options: Any
    ) -> None:
        if with_parent is not None:
            end_with_parent(with_parent)
        if on_word and not sys.stdin.readline():
            return
        end_forks_with_parent(GENERATIONS)
        if name := options["cluster_name"]:
            Conf.CLUSTER_NAME = name  # q2 itself reads it from the environment, before this option
        tasks.prepare_cluster()
        super().handle(*args, **options)
