"""A child of the supervisor: started by exec, started again when it died, ended with all that it started."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from runs.work import process_tree

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0  # alive so long, the next death is a first one again
READ_BYTES = 65_536


class Child:
    """`command` is one of manage.py. If it `reports`, its last line of output is `said`; its log goes where ours goes.

    To be started by the main thread only: the kernel takes the end of the thread that forked for the parent's.
    """

    def __init__(self, name: str, *command: str, reports: bool = False) -> None:
        self.name, self.command, self.reports = name, command, reports
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0  # monotonic, as the next
        self.start_again_at = 0.0
        self.pause_seconds = FIRST_PAUSE_SECONDS
        self.said = ""

    def start(self, *, on_word: bool = False) -> None:
        """`on_word`: it gets ready, and waits for `go`."""
        command = [
            *_manage(),
            *self.command,
            "--with-parent",
            str(os.getpid()),
            "--skip-checks",
        ]  # ours were made
        self.process = subprocess.Popen(
            [sys.executable, *command, *["--on-word"] * on_word],
            stdin=subprocess.PIPE if on_word else subprocess.DEVNULL,
            stdout=subprocess.PIPE if self.reports else None,
            start_new_session=True,  # Ctrl-C reaches the supervisor alone; and a session finds orphans
        )
        if self.process.stdout is not None:
            os.set_blocking(self.process.stdout.fileno(), False)
        self.started_at, self.said = time.monotonic(), ""

    def go(self) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.write(b"go\n")
            self.process.stdin.close()
        self.started_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def look(self) -> None:
        """Read what it said. If it has died, end what it left behind, and start it again after a growing pause."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_again_at:
                self.start()
            return
        self._read()
        if self.is_running():
            return
        if now - self.started_at > STEADY_SECONDS:
            self.pause_seconds = FIRST_PAUSE_SECONDS
        process_tree.end(self.process.pid)
        ended = _how(self.process.wait())
        log.error("The %s ended (%s); it starts again in %g s", self.name, ended, self.pause_seconds)
        self._forget()
        self.start_again_at = now + self.pause_seconds
        self.pause_seconds = min(self.pause_seconds * 2, LONGEST_PAUSE_SECONDS)

    def is_running(self) -> bool:
        """Without waiting for it: until then nobody else can get its pid."""
        if self.process is None:
            return False
        try:
            return process_tree.is_alive(psutil.Process(self.process.pid))
        except psutil.NoSuchProcess:
            return False

    def tell(self, number: signal.Signals) -> None:
        if self.is_running():
            os.kill(self.process.pid, number)

    def end(self, patience_seconds: float = 0.0) -> set[int]:
        """End it as a whole tree; the pids that were there."""
        if self.process is None:
            return set()
        ended = process_tree.end(self.process.pid, patience_seconds)
        self.process.wait()
        self._forget()
        return ended

    def _read(self) -> None:
        if self.process.stdout is None:
            return
        with suppress(BlockingIOError):
            lines = os.read(self.process.stdout.fileno(), READ_BYTES).decode(errors="replace").split("\n")
            if len(lines) > 1:
                self.said = lines[-2]

    def _forget(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process, self.said = None, ""


def _manage() -> list[str]:
    script = Path(sys.argv[0])
    return [str(script.absolute())] if script.name == "manage.py" else ["-m", "django"]


def _how(returncode: int) -> str:
    return f"killed by {signal.Signals(-returncode).name}" if returncode < 0 else f"exit code {returncode}"
