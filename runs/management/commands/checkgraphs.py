"""Would a deploy of this code strand runs?"""

from __future__ import annotations

import argparse
from typing import Any  # options are whatever the command line gives

from django.core.management.base import CommandError

from runs.command_line import OneLineCommand, as_json, number_of, one_line, visible
from runs.engine.checking import IDS_TOLD, Report, Version, check_graphs


class Command(OneLineCommand):
    help = "Says which live runs this code would strand, before it is deployed: run it with the new code."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        report = check_graphs()
        if options["json"]:
            self.stdout.write(as_json(_told(report)))
        else:
            for line in _lines(report):
                self.stdout.write(visible(line))
        if not report.ok:
            raise CommandError("Do not deploy this code: it would leave runs behind.")


def _told(report: Report) -> dict[str, Any]:
    return {
        "ok": report.ok,
        "stranded": [version.told() for version in report.stranded],
        "migratable": [version.told() for version in report.migratable],
        "changed": [{"graph": name, "version": version} for name, version in report.changed],
        "broken": report.broken,
    }


def _lines(report: Report) -> list[str]:
    lines = [f"{module} cannot be imported: {one_line(error)}" for module, error in report.broken.items()]
    for name, version in report.changed:
        lines.append(f"{name} version {version}: its nodes or edges have changed; bump the version")
    for one in report.stranded:
        lines.append(f"{_runs(one)} would be held ({one.needs}): {one_line(one.why)}")
        lines += [f"  {run}" for run in one.ids]
        if one.runs > IDS_TOLD:
            lines.append(f"  and {one.runs - IDS_TOLD} more")
    for one in report.migratable:
        lines.append(f"{_runs(one)} would be migrated to version {one.to}")
        lines += [f"  not {run}: {one_line(error)}" for run, error in one.failing.items()]
    return lines or ["Every live run goes on with this code."]


def _runs(one: Version) -> str:
    return f"{one.graph} version {one.version}: {number_of(one.runs, 'live run')}"
