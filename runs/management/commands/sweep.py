"""Collect what nobody refers to any more."""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, as_json, number_of
from runs.engine import sweeping


class Command(OneLineCommand):
    help = (
        "Deletes blobs that nobody refers to or wanted for a day, and files of blobs that were left behind."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        told = {"blobs": sweeping.sweep_rows(), "files": sweeping.sweep_files()}
        blobs, files = number_of(told["blobs"], "blob"), number_of(told["files"], "file")
        line = f"{blobs} collected, {files} without a blob deleted"
        self.stdout.write(as_json(told) if options["json"] else line)
