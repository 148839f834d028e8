"""`manage.py up`: everything on this machine in one command."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest
from django.core.management import CommandError, call_command

from durableweb.management.commands import up
from tests.conftest import ROOT


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
    kept = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for name, action in kept.items():
        signal.signal(name, action)


def test_a_taken_port_is_named_with_the_remedy_before_anything_is_changed(taken, kept_signals, monkeypatch):
    monkeypatch.setattr(up.Command, "_migrate", lambda self: pytest.fail("it went on"))
    with pytest.raises(CommandError, match=rf"Port {taken} on 127\.0\.0\.1 .*--port {taken + 1}\."):
        call_command("up", port=taken)


@pytest.mark.parametrize("word", ["0", "65536", "-1", "web", ""])
def test_a_port_that_is_none_is_refused(word):
    with pytest.raises(CommandError, match="write a number from 1 to 65535"):
        call_command("up", f"--port={word}")


@pytest.mark.acceptance
@pytest.mark.sqlite_only
def test_ctrl_c_ends_pages_and_worker_and_a_second_start_keeps_the_rows(tmp_path, free_port):
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DURABLEWEB_")}
    command = [sys.executable, "manage.py", "up", "--no-demo", "--port", str(free_port)]
    for database in (r"Database: \d+ migrations to apply", "Database: up to date"):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=ours | {"DURABLEWEB_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            page = wait_for(f"http://127.0.0.1:{free_port}/login/", process)
            assert 'name="password"' in page
            family = psutil.Process(process.pid).children(recursive=True)
            assert family
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode == 0, printed
        assert re.search(database, printed) and printed.endswith("Stopped.\n")
        assert [one for one in family if one.is_running()] == []


def wait_for(address: str, process: subprocess.Popen[str]) -> str:
    end = time.monotonic() + 90
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address) as response:
                return response.read().decode()
        except OSError:
            time.sleep(0.1)
    pytest.fail(
        f"{address} did not answer: {process.communicate()[0] if process.poll() is not None else 'timeout'}"
    )
