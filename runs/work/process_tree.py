"""A process with everything it started: found by pid, ended as a whole."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import psutil

LOOK_SECONDS = 0.05
DIES_WITHIN_SECONDS = 3.0  # after SIGKILL; one that the kernel holds longer is left to it


def family(pid: int) -> set[psutil.Process]:
    """The process, its descendants, and who lives in its session: an orphan has another parent by then.

    The pid must still be ours to name: a child that was not waited for, though it may be dead.
    """
    members: set[psutil.Process] = set()
    for other in (pid, *_session(pid)):
        with suppress(psutil.Error):
            process = psutil.Process(other)
            members |= {process, *process.children(recursive=True)}
    members.discard(psutil.Process())
    return {process for process in members if is_alive(process)}


def end(pid: int, patience_seconds: float = 0.0) -> set[int]:
    """Ask the whole tree to end, wait, kill what is left. The pids that were there."""
    members = family(pid)
    if patience_seconds > 0:
        for process in members:
            with suppress(psutil.Error):
                process.terminate()
        wait_until_gone(members, patience_seconds)
    found = {process.pid for process in members}
    until = time.monotonic() + DIES_WITHIN_SECONDS
    while (left := family(pid) | {process for process in members if is_alive(process)}) and (
        time.monotonic() < until
    ):
        members |= left  # one of them may have forked in between
        found |= {process.pid for process in left}
        kill(left)
        wait_until_gone(left, LOOK_SECONDS * 4)
    return found


def kill(members: set[psutil.Process]) -> None:
    for process in members:
        with suppress(psutil.Error):
            process.kill()  # psutil compares start times: a pid that was given anew is left alone


def wait_until_gone(members: set[psutil.Process], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while any(map(is_alive, members)):
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def is_alive(process: psutil.Process) -> bool:
    """Not gone, and not dead though nobody has waited for it."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _session(pid: int) -> list[int]:
    members = []
    for other in psutil.pids():
        with suppress(OSError):
            if os.getsid(other) == pid:
                members.append(other)
    return members
