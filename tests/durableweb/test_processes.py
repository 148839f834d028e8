"""The processes of a local installation: restarted when they die, all gone at the end."""

from __future__ import annotations

import sys
import time

import psutil
import pytest

from durableweb.processes import Part, end_all
from tests.conftest import ROOT

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); {}"
subprocess.Popen([sys.executable, "-c", code.format("time.sleep(600)")])
subprocess.Popen([sys.executable, "-c", code.format("time.sleep(600)")], start_new_session=True)
time.sleep(600)
"""


@pytest.fixture
def part(tmp_path):
    """part(code) makes a Part that runs this Python code; what it said is in part.said."""
    made = []

    def make(code):
        said = []
        one = Part("web", [sys.executable, "-c", code], tmp_path / "web.log", said.append, ROOT)
        one.said = said
        made.append(one)
        return one

    yield make
    end_all(made, 0)


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


def test_a_whole_tree_that_ignores_the_request_is_gone_after_the_grace(part):
    stubborn = part(STUBBORN)
    stubborn.start()
    pids = until(
        lambda: len(lines := stubborn.log.read_text().split()) == 2 and [int(line) for line in lines]
    )
    family = [psutil.Process(pid) for pid in [stubborn.process.pid, *pids]]
    began = time.monotonic()
    end_all([stubborn], grace_seconds=0.3)
    assert time.monotonic() - began >= 0.3
    assert [process.pid for process in family if process.is_running()] == []


def test_orphans_of_a_parent_that_ended_in_time_are_gone_too(part):
    quick = part(STUBBORN.replace("signal.signal(signal.SIGTERM, signal.SIG_IGN)\ncode", "code", 1))
    quick.start()
    pids = until(lambda: len(lines := quick.log.read_text().split()) == 2 and [int(line) for line in lines])
    end_all([quick], grace_seconds=0.3)
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []


def test_a_part_that_stops_when_asked_is_not_waited_for(part):
    polite = part("import time; print('up', flush=True); time.sleep(600)")
    polite.start()
    until(lambda: "up" in polite.log.read_text())
    began = time.monotonic()
    end_all([polite], grace_seconds=60)
    assert time.monotonic() - began < 30
    assert polite.process.returncode == -15


def test_a_part_that_died_is_named_and_started_again_with_growing_pauses(part, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("durableweb.processes.time.monotonic", lambda: clock[0])
    frail = part("print('the reason'); raise SystemExit(7)")
    frail.start()
    for pause in (1, 2, 4):
        died = frail.process.pid
        frail.process.wait()
        frail.said.clear()
        frail.look()
        assert "web process ended (exit code 7)" in frail.said[0] and f"again in {pause} s" in frail.said[0]
        assert [line.strip() for line in frail.said[1:]] == ["the reason"]  # of this life only
        clock[0] += pause - 0.1
        frail.look()
        assert frail.process.pid == died
        clock[0] += 0.2
        frail.look()
        assert frail.process.pid != died


def test_a_death_after_a_long_life_is_a_first_one_again(part, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("durableweb.processes.time.monotonic", lambda: clock[0])
    frail = part("raise SystemExit(1)")
    frail.pause_seconds = 16
    frail.start()
    frail.process.wait()
    clock[0] += 61
    frail.look()
    assert "again in 1 s" in frail.said[0]
