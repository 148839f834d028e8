"""`manage.py crashtest`: real kills of real processes, in an installation of its own that is thrown away."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError

from runs import Graph
from runs.models import Run
from runs.testing import CrashFound, crash_everywhere, throw_away
from runs.testing.crash import _spread
from tests.amounts import THOROUGH
from tests.conftest import COPY_OF
from tests.runs.driving import registered
from tests.trials.graphs import Letter, book, careless, letters, post

ADA = json.dumps({"to": "ada"})
SEEN = json.dumps({"seen#1": {"payload": {"by": "bob"}}})


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setenv("DURABLEWEB_APPS", "tests.trials")
    with registered(letters, careless):
        yield


@pytest.fixture
def begun(monkeypatch):
    """In a developer's run an installation that is thrown away begins with tables; with CI=true its own migrate makes
    them from nothing, which takes ten times as long as the trial."""

    class Begun(tempfile.TemporaryDirectory):
        def __init__(self, **given: str) -> None:
            super().__init__(**given)
            shutil.copyfile(COPY_OF, Path(self.name, "durableweb.sqlite3"))

    if COPY_OF and not THOROUGH:
        monkeypatch.setattr(throw_away, "tempfile", SimpleNamespace(TemporaryDirectory=Begun))


def crashtest(*words: str) -> str:
    out = StringIO()
    call_command("crashtest", *words, stdout=out)
    return out.getvalue()


@pytest.mark.sqlite_only  # its own database is one, whatever the installation's is
def test_a_graph_that_keeps_its_promises_is_killed_here_and_there_and_nothing_is_doubled(
    begun, monkeypatch, tmp_path
):
    """A20: with some of the kills, spread over the whole run. The user's own database and home are not opened."""
    monkeypatch.setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("DURABLEWEB_HOME", str(tmp_path))
    told = json.loads(crashtest("trial-letters", "--input", ADA, "--answers", SEEN, "--kills", "4", "--json"))
    assert told["ok"] and told["status"] == "completed" and told["broken"] == ""
    assert (told["kills"], told["duplicates"], told["outside"]) == (4, 0, 0)
    assert told["effects"] == {"post": 1}
    assert {"claim", "call", "answer", "signal", "committed complete"} <= set(told["boundaries"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sqlite_only  # its own database is one, whatever the installation's is
def test_what_a_node_does_outside_of_a_tool_is_found_and_named(begun, capsys):
    """It would be done again by whoever goes on; the command ends with an error that says where, and what to do."""
    with pytest.raises(CommandError) as broken:
        crashtest("trial-careless", "--input", ADA, "--stand-ins", "tests.trials.graphs:STAND_INS")
    assert broken.value.returncode == 1
    said = str(broken.value)
    assert "node 'hurry' did a write to a file 2 times, unharmed 1" in said
    assert "make it a tool" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["unknown"], "There is no graph 'unknown'"),
        (["trial-letters", "--input", '{"too": "ada"}'], "to: Field required"),
        (["trial-letters", "--input", "{"], "--input is not JSON"),
        (["trial-letters", "--input", ADA, "--kills", "0"], "--kills 0: give 1 or more"),
        (["trial-letters", "--input", ADA, "--answers", "[]"], "write an object by key"),
        (["trial-letters", "--input", ADA, "--answers", '{"a": 1}'], "write an object by key"),
        (
            ["trial-letters", "--input", ADA, "--stand-ins", "tests.trials.graphs"],
            "--stand-ins: 'tests.trials.graphs' is no module:name",
        ),
        (["trial-letters", "--input", ADA, "--stand-ins", "tests.trials.graphs:letters"], "is no dict"),
        (["trial-letters", "--input", ADA, "--stand-ins", "nowhere:x"], "is no module:name"),
    ],
)
def test_what_cannot_be_tried_is_said_in_a_line_before_anything_is_made(words, said, monkeypatch):
    monkeypatch.setattr("runs.testing.throw_away.subprocess.run", None)
    with pytest.raises(CommandError) as refused:
        crashtest(*words)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_where_debug_is_off_writes_are_called_only_if_one_says_so(settings, monkeypatch):
    """There the secrets are those of a real installation."""
    settings.TESTING = False
    asked: list[Any] = []
    monkeypatch.setattr("runs.testing.throw_away.trial", lambda given: asked.append(given) or TOLD)
    with pytest.raises(CommandError, match="post would really be called"):
        crashtest("trial-letters", "--input", ADA)
    assert asked == []
    crashtest("trial-letters", "--input", ADA, "--really")
    shown = crashtest("trial-letters", "--input", ADA, "--stand-ins", "tests.trials.graphs:STAND_INS")
    assert len(asked) == 2
    assert "duplicates  0" in shown and "post x 1" in shown


TOLD = {"graph": "trial-letters", "version": 1, "ok": True, "status": "completed", "boundaries": ["start"]}
TOLD |= {
    "kills": 1,
    "effects": {"post": 1},
    "duplicates": 0,
    "repeated": 0,
    "in_doubt": 0,
    "outside": 0,
    "broken": "",
}


def reach_out() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"hello", ("127.0.0.1", 9))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("act", "said"),
    [
        (reach_out, "a message by network"),
        (lambda: os.mkdir(os.path.join(os.environ["DURABLEWEB_HOME"], "again")), "a new folder"),
        (lambda: os.system("true"), "a call of another program"),
        (lambda: Group.objects.create(name=os.urandom(4).hex()), "an INSERT of rows"),
        (lambda: Group.objects.filter(name="x")._raw_delete("default"), "a DELETE of rows"),
    ],
    ids=["network", "folder", "program", "insert", "delete"],
)
def test_the_kit_sees_what_nodes_do_to_the_world(act, said):
    graph = Graph("reaching", state=Letter)

    @graph.node
    def reach(run, state):
        with suppress(FileExistsError):
            act()

    with pytest.raises(CrashFound, match=f"node 'reach' did {said} 2 times, unharmed 1") as found:
        crash_everywhere(graph, {"to": "x"}, outside=True)
    assert found.value.duplicates == 1
    assert found.value.report.status == "completed"


@pytest.mark.django_db(transaction=True)
def test_what_tools_recorded_values_and_the_engine_do_is_not_outside():
    """A file that a tool writes, a value recorded once, a blob, rows that are only read."""
    graph = Graph("inside", state=Letter)

    @graph.node
    def keep(run, state):
        run.once("booked", lambda: book("once"))
        state.log.append(run.call(post, to=state.to))
        run.blob(str(run.id).encode(), "text/plain")
        Group.objects.filter(name="nobody").exists()

    report = crash_everywhere(graph, {"to": "x"}, outside=True, kills=5)
    assert (report.outside, report.kills, report.effects) == (0, 5, {"post": 1})
    assert Run.objects.filter(graph="inside").count() == 6


def test_kills_are_spread_from_the_first_boundary_to_the_last():
    spread = [list(_spread(boundaries, kills)) for boundaries, kills in ((10, 4), (10, 1), (3, 9))]
    assert spread == [[1, 4, 7, 10], [6], [1, 2, 3]]
    assert [_spread(boundaries, range(2, 99, 2)) for boundaries in (5, 6)] == [[2, 4], [2, 4, 6]]
