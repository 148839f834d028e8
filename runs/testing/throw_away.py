"""`crashtest` in an installation of its own, which is thrown away: a folder, and a process that has its home there.

The database is a SQLite file in it, mail and blobs are files in it, and nothing of the user's own installation is used
but its code and its secrets.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any  # inputs, answers and stand-ins are the author's

from django.core.management import call_command

from runs import registry
from runs.secrets import guard
from runs.testing.crash import CrashFound, crash_everywhere
from runs.testing.process import ChildFailed

ASKED, REPORT, LOG = "asked.json", "report.json", "log.txt"
OWN = (
    "DATABASE_URL",
    "REDIS_URL",
    "DURABLEWEB_EMAIL_URL",
    "DURABLEWEB_DEBUG",
)  # the user's, which it must not touch
INSIDE = f"import django; django.setup(); from {__name__} import try_in; import sys; try_in(sys.argv[1])"


class Failed(Exception):
    """The trial could not be made at all; the message says why."""


def trial(asked: dict[str, Any]) -> dict[str, Any]:
    """The report of a process of its own. `asked`: graph, input, answers, stand_ins, kills. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="durableweb-crashtest-") as name:
        folder = Path(name)
        (folder / ASKED).write_text(json.dumps(asked))
        environment = {name: value for name, value in os.environ.items() if name not in OWN}
        environment |= {
            "DURABLEWEB_HOME": name,
            "DURABLEWEB_SECRET_KEY": secrets.token_urlsafe(48),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        with open(folder / LOG, "wb") as log:
            command = [sys.executable, "-c", INSIDE, name]
            ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if ended.returncode == 0:
            return json.loads((folder / REPORT).read_text())
        said = (folder / LOG).read_text(errors="replace").strip() or f"it ended with {ended.returncode}"
        raise Failed(guard().redact(said.splitlines()[-1]))


def stand_ins(place: str) -> dict[str, Any]:
    """`module:name` of a dict from names of tools to functions. Raises Failed."""
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise Failed(f"{place!r} is no module:name of a dict of functions: {error}") from error
    if not isinstance(found, dict) or not all(map(callable, found.values())):
        raise Failed(f"{place!r} is no dict from names of tools to functions.")
    return found


class Answers(dict[str, Any]):
    """What the user gave by key; whatever else people are asked is approved as it was proposed."""

    def __bool__(self) -> bool:
        return True

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else _approve


def _approve(request: dict[str, Any]) -> dict[str, Any] | None:
    verdicts = request.get("verdicts")
    if not verdicts or request.get(
        "settles"
    ):  # a signal; or an effect in doubt, of which the kit knows the truth
        return None
    return {"verdict": "approve" if "approve" in verdicts else verdicts[0], "reason": "crashtest"}


def try_in(name: str) -> None:
    """In the process of its own: what is asked for stands in the folder of that name, and the report is left there."""
    folder = Path(name)
    asked = json.loads((folder / ASKED).read_text())
    graph = registry.get(asked["graph"])
    call_command("migrate", verbosity=0)
    effects = stand_ins(asked["stand_ins"]) if asked["stand_ins"] else {}
    answers = Answers(asked["answers"])
    broken, duplicates = "", 0
    try:
        report = crash_everywhere(graph, asked["input"], answers, effects, kills=asked["kills"], outside=True)
    except CrashFound as found:
        report, broken, duplicates = found.report, guard().redact(str(found)), found.duplicates
    except ChildFailed as failed:
        sys.exit(str(failed).strip().splitlines()[-1])
    told = {
        "graph": graph.name,
        "version": graph.version,
        "ok": not broken,
        "status": report.status,
        "boundaries": report.boundaries,
        "kills": report.kills + bool(broken),
        "effects": report.effects,
        "duplicates": duplicates,
        "repeated": report.repeated,
        "in_doubt": report.in_doubt,
        "outside": report.outside,
        "broken": broken,
    }
    (folder / REPORT).write_text(json.dumps(told))
