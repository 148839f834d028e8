"""`manage.py up`: everything on this machine in one command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
from django.core.management import CommandError, call_command

from durableweb.management.commands import up as command
from tests import warm_start
from tests.acceptance.installation import let_go
from tests.amounts import THOROUGH
from tests.conftest import COPY_OF, ROOT


@pytest.fixture
def taken():
    """A port of loopback that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def kept_signals():
    kept = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for name, action in kept.items():
        signal.signal(name, action)


def test_a_taken_port_is_named_with_the_remedy_before_anything_is_changed(taken, kept_signals, monkeypatch):
    monkeypatch.setattr(command.Command, "_migrate", lambda self: pytest.fail("it went on"))
    with pytest.raises(CommandError, match=rf"Port {taken} on 127\.0\.0\.1 .*--port {taken + 1}\."):
        call_command("up", port=taken)


def test_ctrl_c_ends_it_also_where_a_shell_had_it_ignored(kept_signals, monkeypatch, capsys):
    """As with `nohup bin/up &`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    monkeypatch.setattr(
        command.Command, "_refuse_taken", lambda self, port: signal.raise_signal(signal.SIGINT)
    )
    monkeypatch.setattr(command.Command, "_migrate", lambda self: pytest.fail("it went on"))
    call_command("up", port=1)
    assert capsys.readouterr().out.endswith("Stopped.\n")


@pytest.mark.parametrize("word", ["0", "65536", "-1", "web", ""])
def test_a_port_that_is_none_is_refused(word):
    with pytest.raises(CommandError, match="write a number from 1 to 65535"):
        call_command("up", f"--port={word}")


@pytest.mark.acceptance
@pytest.mark.sqlite_only
def test_ctrl_c_ends_pages_and_worker_and_a_run_under_way_goes_on_at_the_second_start(tmp_path, free_port):
    """P1: no row is lost; only the node that Ctrl-C cut off, for it does not end within the grace, begins anew."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DURABLEWEB_")}
    ours |= {"DURABLEWEB_HOME": str(tmp_path), "DURABLEWEB_DEBUG": "1", "DURABLEWEB_APPS": "tests.acceptance"}
    if COPY_OF and not THOROUGH:
        one_migration_is_missing(tmp_path / "durableweb.sqlite3")
    with up(ours, free_port) as first:
        assert 'name="password"' in wait_for(f"http://127.0.0.1:{free_port}/login/", first)
        given = json.dumps({"path": str(tmp_path / "diary"), "held": 1, "rounds": 3})
        start = [sys.executable, "manage.py", "start", "patient", "--input", given]
        assert warm_start.run(start, cwd=ROOT, env=ours).returncode == 0
        until((tmp_path / "diary").exists, first)
        assert r"migrations to apply" in ctrl_c(first)
    assert run_in(tmp_path) == ("running", 0)
    let_go(tmp_path, 1)
    with up(ours, free_port) as second:
        assert 'name="password"' in wait_for(f"http://127.0.0.1:{free_port}/login/", second)
        until(lambda: run_in(tmp_path)[0] != "running", second)
        assert "Database: up to date" in ctrl_c(second)
    assert run_in(tmp_path) == ("completed", 3)
    assert len((tmp_path / "diary").read_text().splitlines()) == 4


def one_migration_is_missing(file: Path) -> None:
    """In a developer's run the first start finds a database to bring up to date; with CI=true it finds none, and goes
    through all migrations, which takes ten seconds of a processor."""
    shutil.copyfile(COPY_OF, file)
    with closing(sqlite3.connect(file)) as rows, rows:
        gone = (
            "DELETE FROM django_migrations WHERE app = 'admin' AND name LIKE '0003%'"  # it changes no table
        )
        assert rows.execute(gone).rowcount == 1


@contextmanager
def up(environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--no-demo", "--port", str(port)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ctrl_c(process: subprocess.Popen[str]) -> str:
    """What it printed; nothing that it has started is left."""
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    assert printed.endswith("Stopped.\n")
    assert [one for one in family if one.is_running()] == []
    return printed


def run_in(home: Path) -> tuple[str, int]:
    """Status and step of the one run."""
    with closing(sqlite3.connect(home / "durableweb.sqlite3")) as rows:
        return rows.execute("SELECT status, step FROM runs_run").fetchone()


def until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None and time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def wait_for(address: str, process: subprocess.Popen[str]) -> str:
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address) as response:
                return response.read().decode()
        except OSError:
            time.sleep(0.1)
    pytest.fail(
        f"{address} did not answer: {process.communicate()[0] if process.poll() is not None else 'timeout'}"
    )
