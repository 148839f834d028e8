"""The processes of a local installation: kept alive while it runs, and none left when it ends."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from runs.work import process_tree

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0  # alive so long, the next death is a first one again
LAST_LINES = 15
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
SET_PARENT_DEATH_SIGNAL = 1


@dataclass
class Part:
    """One child with everything it starts, in a session of its own; its output goes to `log`."""

    name: str
    command: Sequence[str | Path]
    log: Path
    say: Callable[[str], None]
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0  # monotonic, as the next
    start_again_at: float | None = None
    pause_seconds: float = FIRST_PAUSE_SECONDS
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
                start_new_session=True,  # Ctrl-C reaches us alone, and we ask
                preexec_fn=_end_with_parent,
            )
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
        process_tree.end(self.process.pid)  # what it left behind
        self.start_again_at = now + self.pause_seconds
        self.pause_seconds = min(self.pause_seconds * 2, LONGEST_PAUSE_SECONDS)


def end_all(parts: Sequence[Part], grace_seconds: float) -> None:
    """Ask each part to stop, wait, then kill what is left of every tree by pid. A KeyboardInterrupt kills at once."""
    pids = [part.process.pid for part in parts if part.process is not None]
    members = _families(pids)  # before a dead parent hides its children
    try:
        for part in parts:
            if part.process is not None and part.process.poll() is None:
                part.process.terminate()
        until = time.monotonic() + grace_seconds
        while time.monotonic() < until and any(map(process_tree.is_alive, members)):
            members |= _families(pids)
            time.sleep(process_tree.LOOK_SECONDS)
    except KeyboardInterrupt:
        pass
    for pid in pids:
        process_tree.end(pid)
    process_tree.kill(members)
    for part in parts:
        if part.process is not None:
            part.process.wait()
    psutil.wait_procs(members, timeout=process_tree.DIES_WITHIN_SECONDS)


def _families(pids: Sequence[int]) -> set[psutil.Process]:
    return {process for pid in pids for process in process_tree.family(pid)}


def _how(returncode: int) -> str:
    if returncode < 0:
        return f"killed by {signal.Signals(-returncode).name}"
    return f"exit code {returncode}"


def _end_with_parent() -> None:
    """On Linux, if we are killed ourselves, the child is asked to stop."""
    if LIBC is not None:
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
