"""Commands that are given something wrong: one clear line, a code that is not 0, and no row changed."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import execute_from_command_line

from approvals.models import Approval
from runs import start
from runs.models import Run
from tests.runs.driving import drive
from tests.security.letters import posted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("letters_known")]

TERMINAL = "\x1b[2J\x07\x9b31m‮"  # would clear a screen, ring, colour, and turn what follows around


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """say("start", "letters") is `manage.py start letters`: (exit code, stdout, stderr)."""

    def run_it(*words: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        try:
            execute_from_command_line(["manage.py", *map(str, words)])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        else:
            code = 0
        out, err = capsys.readouterr()
        return code, out, err

    return run_it


def rows() -> dict[str, int]:
    """How many of each there are, and what the runs look like."""
    counts = {model._meta.label: model._default_manager.count() for model in apps.get_models()}
    return counts | {f"{run.pk}": f"{run.status} {run.seq} {run.fence}" for run in Run.objects.all()}


def one_line(err: str) -> str:
    assert "Traceback" not in err
    (line,) = err.strip().splitlines()
    assert len(line) < 2_000
    assert line.isprintable(), line
    return line


def wrong_inputs(folder: Path) -> Iterator[tuple[str, str]]:
    """(what --input is given, a word of the answer)"""
    for name, content in (
        ("long", json.dumps({"text": "x" * 10_000_000})),
        ("deep", "[" * 100_000 + "]" * 100_000),
        ("deeper", '{"a":' * 1_000 + "1" + "}" * 1_000),
    ):
        (folder / name).write_text(content)
        yield f"@{folder / name}", ""
    (folder / "bytes").write_bytes(b"\xff\xfe{}")
    yield f"@{folder / 'bytes'}", "--input"
    yield f"@{folder}", "--input"
    yield f"@{folder / 'missing'}", "missing"
    yield f"@{folder}/miss\x00ing", "--input"
    yield "@", "--input"
    for text in (
        "{",
        "",
        "nonsense",
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": 1} x',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5_000 + "}",
    ):
        yield text, ""
    yield '{"a": 1, "a": 2}', "twice"
    for text in ("[]", "5", '"text"', "true"):
        yield text, "dict"


def test_start_refuses_input_that_is_none(say: Any, tmp_path: Path) -> None:
    before = rows()
    for given, word in wrong_inputs(tmp_path):
        code, out, err = say("start", "letters", "--input", given)
        assert (code, out) == (1, ""), (given[:60], code, out)
        assert word in one_line(err), (given[:60], err[:500])
        assert rows() == before, given[:60]
    code, _out, err = say("start", "letters", "--input", "-", stdin="{")
    assert code == 1 and "--input -" in one_line(err)


BRIEF = {"goal": "Compare them", "vendors": ["channels"], "to": "helen@example.com"}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "goal"),
        ({**BRIEF, "vendors": "channels"}, "vendors"),
        ({**BRIEF, "vendors": []}, "vendors"),
        ({**BRIEF, "to": "nobody"}, "to"),
        ({**BRIEF, "to": "a@b.example\nBcc: eve@example.com"}, "to"),
        ({**BRIEF, "goal": ""}, "goal"),
        ({**BRIEF, "goal": 7}, "goal"),
        ({**BRIEF, "goal": "x" * 501}, "goal"),
        ({**BRIEF, "budget": 1}, "budget"),
        ({**BRIEF, "drafts": "many"}, "drafts"),
    ],
)
def test_start_names_the_field_that_does_not_fit(say: Any, given: Any, word: str) -> None:
    before = rows()
    code, out, err = say("start", "competitive-brief", "--input", json.dumps(given))
    assert (code, out) == (1, "")
    assert word in one_line(err)
    assert rows() == before


def test_start_refuses_a_graph_a_key_or_a_person_that_is_none(say: Any, person: Any) -> None:
    gone = person("gone")
    gone.is_active = False
    gone.save()
    start("letters", {"n": 1}, key="taken")
    before = rows()
    for words, word in (
        (["no-such-graph"], "Known graphs"),
        (["lett\udcffers"], "no graph"),
        ([""], "no graph"),
        (["x" * 100_000], "no graph"),
        (["letters", "--key", ""], "blank"),
        (["letters", "--key", " \t "], "blank"),
        (["letters", "--key", "x" * 201], "201"),
        (["letters", "--key", "a\x00b"], "NUL"),
        (["letters", "--key", "a\udcffb"], "surrogates"),
        (["letters", "--key", "taken"], "another input"),
        (["letters", "--key", "\u200b"], "--key: Write it so that"),
        (["letters", "--key", "\u3164"], "--key: Write it so that"),
        (["letters", "--key", "a\nb"], "--key: Write it so that"),
        (["letters", "--key", "a\x01b"], "--key: Write it so that"),
        (["letters", "--by", "nobody"], "nobody"),
        (["letters", "--by", ""], "--by: there is no active user ''."),
        (["letters", "--by", "gone"], "gone"),
        (["letters", "--by", "no\x00body"], "--by"),
        (["letters", "--by", "no\udcffbody"], "--by"),
        (["letters", "--by", TERMINAL], "--by"),
        (["letters", "--colour", "red"], "--colour"),
        ([], "graph"),
    ):
        code, out, err = say("start", *words)
        assert (code > 0, out) == (True, ""), words
        assert word in one_line(err), (words, err[:300])
        assert rows() == before, words


def test_a_run_that_is_not_there_is_named(say: Any, run: Run) -> None:
    before = rows()
    for command, options in (("show", []), ("cancel", ["--reason", "x"])):
        for name in ("01a22900-0000-7000-8000-000000000000", "ffffff", "", "nonsense", "12", "%", "x" * 50_000,
                     TERMINAL, "a\x00b", "a\udcffb", "'; DROP TABLE runs_run; --", "../../etc/passwd"):  # fmt: skip
            code, out, err = say(command, name, *options)
            assert (code, out) == (1, ""), (command, name[:50])
            assert "no run" in one_line(err), (command, name[:50])
    assert "the last six or more digits are taken" in say("show", str(run.pk)[:8])[2]
    for command, did in (
        ("cancel", "cancelled"),
        ("keep", "kept"),
        ("erase", "erased"),
        ("migrate_run", "migrated"),
    ):
        assert (
            say(command, run.pk, "--reason", "")[2] == f"CommandError: --reason: Say why the run is {did}.\n"
        )
    assert "--by: there is no active user ''." in say("erase", run.pk, "--reason", "x", "--by", "")[2]
    for options in ([], ["--reason", ""], ["--reason", "  \n"], ["--reason", "x" * 100_000]):
        code, out, err = say("cancel", run.pk, *options)
        assert (code > 0, out) == (True, "")
        assert "reason" in one_line(err)
    assert rows() == before


def test_a_run_that_has_ended_is_not_cancelled(say: Any, run: Run) -> None:
    run.cancel("user olga", "not needed")
    before = rows()
    code, out, err = say("cancel", run.pk, "--reason", "again")
    assert (code, out) == (1, "")
    assert "is cancelled" in one_line(err)
    assert rows() == before
    assert say("erase", run.pk, "--reason", "x")[1] == f"{run.pk} letters erased: 1 run\n"


def test_an_account_without_a_name_acts_by_its_number(say: Any, run: Run, monkeypatch: Any) -> None:
    """As in a container that knows no user of that number."""

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert say("cancel", run.pk, "--reason", "not needed")[0] == 0
    assert run.checkpoints.get(kind="cancel").actor == f"shell of {os.getuid()}"


def test_decide_refuses_what_is_wrong(say: Any, run: Run, ada: Any, eve: Any, tmp_path: Path) -> None:
    approval = Approval.objects.get(run=run)
    before = rows()
    right = {"--verdict": "approve", "--by": "ada"}
    (tmp_path / "long").write_text(json.dumps({"to": "x" * 10_000_000, "copies": 7, "note": "x"}))
    (tmp_path / "deep").write_text("[" * 100_000)
    for changed, word in (
        ({"--verdict": "nuke"}, "not offered"),
        ({"--verdict": TERMINAL}, "not offered"),
        ({"--verdict": "respond"}, "not offered"),
        ({"--by": "nobody"}, "no user"),
        ({"--by": "a\x00b"}, "no user"),
        ({"--by": "a\udcffb"}, "no user"),
        ({"--by": "eve"}, "no approval"),
        ({"--verdict": "edit"}, "payload"),
        ({"--verdict": "edit", "--payload": "{"}, "JSON"),
        ({"--verdict": "edit", "--payload": "NaN"}, "JSON"),
        ({"--verdict": "edit", "--payload": "{}"}, "missing"),
        ({"--verdict": "edit", "--payload": '{"to": "\\ud800", "copies": "many", "note": ""}'}, "copies"),
        ({"--verdict": "edit", "--payload": f"@{tmp_path / 'missing'}"}, "missing"),
        ({"--verdict": "edit", "--payload": f"@{tmp_path}"}, "payload"),
        ({"--verdict": "edit", "--payload": f"@{tmp_path / 'long'}"}, "bytes"),
        ({"--verdict": "edit", "--payload": f"@{tmp_path / 'deep'}"}, ""),
        ({"--verdict": "reject", "--reason": "x" * 20_001}, "reason"),
        ({"--revision": "7"}, "revision"),
        ({"--revision": "x"}, "revision"),
        ({"--operation-id": "x" * 201}, "operation id"),
        ({"--operation-id": "a\x00b"}, "operation id"),
    ):
        words = [word for pair in {**right, **changed}.items() for word in pair]
        code, out, err = say("decide", approval.pk, *words)
        assert (code > 0, out) == (True, ""), changed
        assert word in one_line(err), (changed, err[:300])
        after = rows()
        if changed.get("--revision") == "7":  # who came second is in the trail
            before = after = rows()
        assert after == before, changed
    for name in ("01a22900", "", "12", "nonsense", "a\x00b", TERMINAL, "x" * 50_000):
        code, out, err = say("decide", name, "--verdict", "approve", "--by", "ada")
        assert (code, out) == (1, ""), name[:50]
        assert "no approval" in one_line(err)
    assert rows() == before
    assert posted == []


def test_other_commands_refuse_numbers_and_words_that_are_none(say: Any, run: Run) -> None:
    before = rows()
    for words in (
        ["list", "--limit", "0"],
        ["list", "--limit", "-1"],
        ["list", "--limit", "many"],
        ["list", "--limit", "9" * 30],
        ["list", "--status", "nonsense"],
        ["tick", "--seconds", "0"],
        ["tick", "--seconds", "nan"],
        ["tick", "--seconds", "inf"],
        ["tick", "--seconds", "-1"],
        ["tick", "--steps", "0"],
        ["tick", "--steps", "1.5"],
    ):
        code, out, err = say(*words)
        assert (code > 0, out) == (True, ""), words
        one_line(err)
    for graph in ("nonsense", "a\x00b", "a\udcffb", TERMINAL):
        code, out, _err = say("list", "--graph", graph)
        assert (code, out.startswith("No such runs, and no graph '")) == (0, True)
        assert "is served here. Known graphs: " in one_line(out)
    assert say("list", "--graph", "parcel")[1] == "No such runs. `manage.py start GRAPH` makes one.\n"
    assert rows() == before


def test_a_signal_is_refused_in_the_words_that_were_typed(say: Any, run: Run) -> None:
    before = rows()
    for words, told in (
        (["", "--key", "a"], "NAME: signal '': a name has 1 to 120 characters."),
        (["paid", "--key", ""], "--key: Give 1 to 200 characters"),
        (["paid", "--key", "\u2063"], "--key: Write it so that"),
        (["pa\x1bid"], "NAME: Write it so that"),
    ):
        code, out, err = say("signal", run.pk, *words)
        assert (code, out) == (1, ""), words
        assert one_line(err).startswith(f"CommandError: {told}"), (words, err)
        assert err.count("characters") == 1, err
    assert rows() == before


def test_the_usage_is_told_where_help_is_asked_for(say: Any) -> None:
    code, out, err = say("list", "--help")
    assert (code, err) == (0, "") and out.startswith("usage: manage.py list")


def test_what_can_be_stored_is_shown_without_taking_over_the_terminal(say: Any) -> None:
    """NUL, lone surrogates and control characters are kept, and printed as escapes."""
    given = {"text": f"a\x00b\ud800{TERMINAL}", TERMINAL: 1}
    code, out, _err = say("start", "letters", "--input", json.dumps(given), "--json")
    assert code == 0
    run = Run.objects.get(pk=json.loads(out)["id"])
    drive(run)
    assert say("cancel", run.pk, "--reason", f"not\n{TERMINAL} \ud800 needed\x00", "--json")[0] == 0
    for options in ([], ["--json"]):
        code, out, err = say("show", run.pk, *options)
        assert (code, err) == (0, ""), err
        for line in out.splitlines():
            assert line.isprintable(), line
    assert json.loads(out)["state"]["text"] == given["text"]
