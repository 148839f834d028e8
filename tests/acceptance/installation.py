"""`manage.py work` as it really runs, on the rows of the test; its processes are found, and killed, by pid."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from runs import start
from runs.models import Run, Worker
from runs.work.process_tree import is_alive, wait_until_gone
from tests import warm_start
from tests.acceptance.graphs import Diary, leave
from tests.conftest import ROOT

START_SECONDS = 120.0
PATIENCE_SECONDS = 120.0  # a condition that does not come to pass; what the machine is slow in is waited for
READY = re.compile(r"ready for work at (\d+)")


@dataclass
class Work:
    """The supervisor and what it started. `log` is what all of them wrote."""

    supervisor: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def cluster(self) -> psutil.Process:
        return next(process for process in self._children() if "qcluster" in process.cmdline())

    @property
    def bell(self) -> psutil.Process:
        return next(process for process in self._children() if "bell" in process.cmdline())

    @property
    def pool(self) -> set[psutil.Process]:
        """q2's workers that live, without its monitor and its pusher."""
        (sentinel,) = self.cluster.children()
        ready = set(map(int, READY.findall(self.log)))
        return {process for process in sentinel.children() if process.pid in ready and is_alive(process)}

    @property
    def family(self) -> set[psutil.Process]:
        return {psutil.Process(self.supervisor.pid), *self._children(recursive=True)}

    def _children(self, recursive: bool = False) -> list[psutil.Process]:
        return psutil.Process(self.supervisor.pid).children(recursive=recursive)

    def is_up(self) -> bool:
        return "guarding cluster" in self.log and "pushing tasks at" in self.log

    def terminate(self, meanwhile: Callable[[], object] = bool) -> float:
        """Ask it to stop; how many seconds that took."""
        began = time.monotonic()
        self.supervisor.send_signal(signal.SIGTERM)
        meanwhile()
        self.supervisor.wait(PATIENCE_SECONDS)
        return time.monotonic() - began


@contextmanager
def working(
    environment: dict[str, str], folder: Path, by_exec: bool = False, **settings: Any
) -> Iterator[Work]:
    """working(..., lease_seconds=60) runs `manage.py work`; nothing of it is left afterwards.

    `by_exec`: as an operator starts it, all of it by exec; else it is forked from a process that is warm.
    """
    popen = subprocess.Popen if by_exec else warm_start.Popen
    environment = environment | {"DURABLEWEB_APPS": "tests.acceptance", "PYTHONUNBUFFERED": "1"}
    environment |= {f"DURABLEWEB_{name.upper()}": str(value) for name, value in settings.items()}
    log_file = folder / f"work-{time.time_ns()}.log"
    with log_file.open("wb") as log:
        supervisor = popen(
            [sys.executable, "manage.py", "work"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    work = Work(supervisor, log_file)
    try:
        until(work.is_up, START_SECONDS, work)
        yield work
    except BaseException:
        print(work.log)
        raise
    finally:
        family = set()
        with suppress(psutil.NoSuchProcess):
            family = work.family
        supervisor.kill()
        supervisor.wait()
        assert wait_until_gone(family, 60), "a process outlived its supervisor"


def begin(graph: Any, folder: Path, **state: Any) -> Run:
    return start(graph, Diary(path=str(folder / "diary"), **state))


def let_go(folder: Path, *numbers: int) -> None:
    """These nodes of the runs that write the folder's diary may end; those that begin later do not wait there."""
    for number in numbers:
        leave(str(folder / "diary"), number).touch()


def diary(folder: Path, what: object) -> int:
    """How often a node wrote this word."""
    path = folder / "diary"
    return path.read_text().count(f"{what} ") if path.exists() else 0


def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS, work: Work | None = None) -> Any:
    """Wait for a condition, and return it. The processes take their time when the machine is busy."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        assert work is None or work.supervisor.poll() is None, "the supervisor ended"
        time.sleep(0.1)
    return found


def ended(run: Run, seconds: float = PATIENCE_SECONDS) -> Run:
    """The run once it has ended."""
    return until(lambda: Run.objects.filter(pk=run.pk, finished_at__isnull=False).first(), seconds)


def driver_of(run: Run, seconds: float = PATIENCE_SECONDS) -> psutil.Process:
    """The process that executes it now."""

    def found() -> psutil.Process | None:
        name = Run.objects.values_list("leased_by", flat=True).get(pk=run.pk)
        worker = Worker.objects.filter(pk=name).first() if name else None
        if worker is None or not psutil.pid_exists(worker.pid):
            return None
        process = psutil.Process(worker.pid)
        return process if is_alive(process) else None

    return until(found, seconds)


def kill(*processes: psutil.Process) -> None:
    """SIGKILL, and see them dead."""
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
    assert wait_until_gone(set(processes), 60), "a killed process lives"
