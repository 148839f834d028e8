"""Archive runs that have ended, with their families: one, or all that ended long ago."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from typing import Any  # options are whatever the command line gives

from runs.command_line import OneLineCommand, as_json, number_of, person_named, shell
from runs.engine import archive_rounds, archiving, clock
from runs.errors import Conflict
from runs.models import Archival, Run

LONGEST_DAYS = 36_500
AT_A_TIME = 100


class Command(OneLineCommand):
    help = "Moves an ended run and its family to the archive, where all of it is read as before."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", nargs="?", help="its id, or the last six or more digits of it")
        parser.add_argument(
            "--older-than",
            type=int,
            metavar="DAYS",
            help="each family that ended so many days ago, or earlier",
        )
        parser.add_argument("--reason", required=True, help="why; it stands on the run's page")
        parser.add_argument("--by", help="user name of who asked for it; left out, the user of the shell")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, run: str | None, older_than: int | None, **options: Any) -> None:
        if (run is None) == (older_than is None):
            self.refuse("Give either a run or --older-than DAYS.")
        if older_than is not None and not 0 <= older_than <= LONGEST_DAYS:
            self.refuse(f"--older-than is {older_than}: write a number of days from 0 to {LONGEST_DAYS}.")
        with self.one_line_errors():
            by = shell()
            if options["by"] is not None:
                by = f"user {person_named(options['by']).get_username()} ({by})"
            if run is not None:
                told, said = self._one(Run.objects.named(run), options["reason"], by)
            else:
                told, said = self._many(timedelta(days=older_than), options["reason"], by)
        self.stdout.write(as_json(told) if options["json"] else said)

    def _one(self, run: Run, reason: str, by: str) -> tuple[dict[str, Any], str]:
        archival = archived_whole(run, reason, by)
        family = Run.objects.filter(root=run.root).count()
        about = {"by": archival.by, "at": archival.at, "reason": archival.reason}
        said = f"{run.root} {run.graph} archived: {number_of(family, 'run')}"
        return {"id": str(run.root), "runs": family, **about}, said

    def _many(self, age: timedelta, reason: str, by: str) -> tuple[dict[str, Any], str]:
        """In order of their end. What may not be archived is counted and left."""
        ended_by, after, archived, left = clock.now() - age, (None, None), 0, 0
        while tops := list(archive_rounds.ended_before(ended_by, *after)[:AT_A_TIME]):
            for top in tops:
                try:
                    archived_whole(top, reason, by, ended_by)
                except Conflict:
                    left += 1
                else:
                    archived += 1
            after = (tops[-1].finished_at, tops[-1].pk)
        said = f"{archived} families archived, {left} left as they are"
        return {"archived": archived, "left": left}, said


def archived_whole(run: Run, reason: str, by: str, ended_by: datetime | None = None) -> Archival:
    """However long the family is: with what a worker would go on with. Raises Conflict, and Invalid."""
    archival = run.archive(reason, by, ended_by)
    while archiving.go_on(run.root):
        pass
    archival.refresh_from_db()
    return archival
