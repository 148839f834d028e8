"""bin/up and bin/test: what they make, and that CI lets nothing be skipped."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.fixture
def private_environment(tmp_path, monkeypatch):
    """The module of bin/, with two requirement files in a folder of their own and no pip: it notes what it would do."""
    spec = importlib.util.spec_from_file_location(
        "private_environment", ROOT / "bin" / "private_environment.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "requirements.txt").write_text("Django==5.2.19\nhttpx==0.28.1\n")
    (tmp_path / "requirements-dev.txt").write_text("-r requirements.txt\npytest==9.2.0\n")
    module.done = []
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "_works", lambda inside: "created" in module.done)
    monkeypatch.setattr(module, "_create", lambda folder, python: module.done.append("created"))
    monkeypatch.setattr(module, "_install", lambda inside, name, folder, use: module.done.append(name))
    return module


BOTH = ["requirements.txt", "requirements-dev.txt"]


def test_the_environment_is_made_once(private_environment, tmp_path):
    folder = tmp_path / ".venv"
    assert private_environment.ready(BOTH, folder) == folder / "bin" / "python"
    private_environment.ready(BOTH, folder)
    private_environment.ready(["requirements.txt"], folder)
    assert private_environment.done == ["created", *BOTH]


def test_a_changed_requirement_is_installed_wherever_it_is_included(private_environment, tmp_path):
    private_environment.ready(BOTH, tmp_path / ".venv")
    private_environment.done[:] = ["created"]
    (tmp_path / "requirements.txt").write_text("Django==5.2.20\nhttpx==0.28.1\n")
    private_environment.ready(BOTH, tmp_path / ".venv")
    assert private_environment.done == ["created", *BOTH]


def test_an_interrupted_installation_is_taken_up_again(private_environment, tmp_path, monkeypatch):
    def fail(inside, name, folder, use):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(private_environment, "_install", fail)
        with pytest.raises(KeyboardInterrupt):
            private_environment.ready(["requirements.txt"], tmp_path / ".venv")
    private_environment.ready(["requirements.txt"], tmp_path / ".venv")
    assert private_environment.done == ["created", "requirements.txt"]


@pytest.mark.parametrize(
    ("said", "is_taken"),
    [
        ("echo 0.000001", True),
        ("echo 1000", False),
        ("exit 1", False),
        ("echo 0.000001; exit 1", False),
        ("echo what", False),
    ],
)
def test_an_environment_is_made_with_the_systems_python_where_that_is_quicker(
    private_environment, tmp_path, monkeypatch, said, is_taken
):
    system, made_with = tmp_path / "python-of-the-system", []
    system.write_text(f"#!/bin/sh\n{said}\n")
    system.chmod(0o700)
    monkeypatch.setattr(private_environment, "OF_THE_SYSTEM", system)
    monkeypatch.setattr(private_environment, "_create", lambda folder, python: made_with.append(python))
    private_environment.ready(BOTH, tmp_path / "quick")
    private_environment.ready(BOTH, tmp_path / "another", "/opt/python")
    system.unlink()
    private_environment.ready(BOTH, tmp_path / "alone")
    assert made_with == [system if is_taken else sys.executable, "/opt/python", sys.executable]


def test_how_quick_a_python_is_can_be_told_of_this_one(private_environment):
    assert 0 < private_environment._seconds(sys.executable) < 60
    assert private_environment.OF_THE_SYSTEM.name == "python{}.{}".format(*sys.version_info)


def test_another_django_takes_the_place_of_the_pinned_one(private_environment):
    text = private_environment._text("requirements-dev.txt", {"Django": "Django==6.1.*"})
    assert text.splitlines() == ["Django==6.1.*", "httpx==0.28.1", "pytest==9.2.0"]


def test_an_unknown_argument_is_refused_before_anything_is_made():
    done = subprocess.run([ROOT / "bin" / "test", "--fast"], capture_output=True, text=True)
    assert done.returncode == 1 and "'--fast'" in done.stderr


def test_with_ci_no_test_may_be_skipped(tmp_path):
    (tmp_path / "test_lazy.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.skip(reason='not today')\ndef test_marked(): pass\n\n"
        "def test_said(): pytest.skip('nor tomorrow')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"CI": "true", "TEST_DRAWN": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 1 and "1 failed, 1 error" in done.stdout, done.stdout
    assert "not today" in done.stdout and "nor tomorrow" in done.stdout


def test_the_ci_entry_runs_the_tests():
    entry = ROOT / ".ci" / "run"
    assert os.access(entry, os.X_OK)
    assert 'exec bin/test "$@"' in entry.read_text() and "set -euo pipefail" in entry.read_text()
