"""The processes of a local installation: kept alive while it runs, and none left when it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0  # alive so long, the next death is a first one again
LAST_LINES = 15
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
SET_PARENT_DEATH_SIGNAL = 1


@dataclass
class Part:
    """One child with everything it starts, in a process group of its own; its output goes to `log`."""

    name: str
    command: Sequence[str | Path]
    log: Path
    say: Callable[[str], None]
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0  # monotonic, as the next
    start_again_at: float | None = None
    pause_seconds: float = FIRST_PAUSE_SECONDS
    groups: set[int] = field(default_factory=set)
    _log_before: int = 0  # bytes of earlier lives

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            self._log_before = log.tell()
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C reaches us alone, and we ask
                preexec_fn=_end_with_parent,
            )
        self.groups.add(self.process.pid)
        self.started_at, self.start_again_at = time.monotonic(), None

    def look(self) -> None:
        """Say it if the process has died, and start it again after a pause that grows with each death."""
        now = time.monotonic()
        if self.start_again_at is not None:
            if now >= self.start_again_at:
                self.start()
            return
        if self.process is None or self.process.poll() is None:
            return
        if now - self.started_at > STEADY_SECONDS:
            self.pause_seconds = FIRST_PAUSE_SECONDS
        self.say(
            f"The {self.name} process ended ({_how(self.process.returncode)}); "
            f"it starts again in {self.pause_seconds:g} s. The end of {self.log}:"
        )
        words = self.log.read_bytes()[self._log_before :].decode(errors="replace")
        for line in words.splitlines()[-LAST_LINES:]:
            self.say(f"    {line}")
        _kill(_family({self.process.pid}, self.groups))  # what it left behind
        self.start_again_at = now + self.pause_seconds
        self.pause_seconds = min(self.pause_seconds * 2, LONGEST_PAUSE_SECONDS)


def end_all(parts: Sequence[Part], grace_seconds: float) -> None:
    """Ask each part to stop, wait, then kill what is left of every tree by pid. A KeyboardInterrupt kills at once."""
    pids = {part.process.pid for part in parts if part.process is not None}
    groups = {group for part in parts for group in part.groups}
    family = _family(pids, groups)  # before a dead parent hides its children
    try:
        for part in parts:
            if part.process is not None and part.process.poll() is None:
                part.process.terminate()
        until = time.monotonic() + grace_seconds
        while time.monotonic() < until and any(map(_is_alive, family)):
            family |= _family(pids, groups)
            time.sleep(0.05)
    except KeyboardInterrupt:
        pass
    family |= _family(pids, groups)
    _kill(family)
    for part in parts:
        if part.process is not None:
            part.process.wait()
    psutil.wait_procs(family, timeout=3)


def _family(pids: set[int], groups: set[int]) -> set[psutil.Process]:
    """The processes, their descendants, and who lives in their groups (orphans have another parent by then)."""
    family: set[psutil.Process] = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            family |= {process, *process.children(recursive=True)}
    for pid in psutil.pids():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getpgid(pid) in groups:
                process = psutil.Process(pid)
                family |= {process, *process.children(recursive=True)}
    family.discard(psutil.Process())
    return family


def _kill(family: set[psutil.Process]) -> None:
    for process in family:
        with suppress(psutil.Error):
            process.kill()  # psutil compares the start time: a pid given to another process is left alone


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _how(returncode: int) -> str:
    if returncode < 0:
        return f"killed by {signal.Signals(-returncode).name}"
    return f"exit code {returncode}"


def _end_with_parent() -> None:
    """On Linux, if we are killed ourselves, the child is asked to stop."""
    if LIBC is not None:
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
