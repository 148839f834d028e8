"""Collect what nobody refers to any more."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import BaseCommand

from runs.command_line import as_json
from runs.engine import sweeping


class Command(BaseCommand):
    help = (
        "Deletes blobs that nobody refers to or wanted for a day, and files of blobs that were left behind."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        told = {"blobs": sweeping.sweep_rows(), "files": sweeping.sweep_files()}
        line = f"{told['blobs']} blobs collected, {told['files']} files without a blob deleted"
        self.stdout.write(as_json(told) if options["json"] else line)
