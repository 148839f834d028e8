"""One of several processes that write to the test's database with the engine's verbs, without a break.

python -m tests.acceptance.writer FOLDER SECONDS prints one JSON object: how many runs it brought to which end, and in
seconds the longest that it waited for the file's write lock and the longest that it held it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

NICENESS = 5  # what else is tested meanwhile goes first


class Turns:
    """The waits for the write lock, and the times for which it was held, of this whole process."""

    def __init__(self) -> None:
        self.longest_wait = self.longest_hold = self.held_since = 0.0

    def watch(self) -> None:
        from durableweb.sqlite.lock import WriteLock

        acquire, release = WriteLock.acquire, WriteLock.release

        def acquired(lock: Any, patience_seconds: float) -> bool:
            began = time.monotonic()
            held = acquire(lock, patience_seconds)
            self.held_since = time.monotonic()
            self.longest_wait = max(self.longest_wait, self.held_since - began)
            return held

        def released(lock: Any) -> None:
            if lock.held:
                self.longest_hold = max(self.longest_hold, time.monotonic() - self.held_since)
            release(lock)

        WriteLock.acquire, WriteLock.release = acquired, released


def write_until(end: float, diary: Path) -> dict[str, int]:
    """Start runs; cancel every fourth, and drive the others to their end: at least one of each. How many of each."""
    from runs import start
    from runs.engine.claim import Claimer
    from runs.engine.drive import Drive
    from tests.acceptance.graphs import Diary

    claimer, ends = Claimer(f"writer {os.getpid()}"), {"completed": 0, "cancelled": 0}
    while time.monotonic() < end or not all(ends.values()):
        run = start("patient", Diary(path=str(diary), rounds=2))
        if sum(ends.values()) % 4 == 3:
            run.cancel("writer", "Enough of it.")
            ends["cancelled"] += 1
        else:
            taken = claimer.claim(alone=True, only=run.pk)
            assert taken is not None, "nobody else knows of this run"
            Drive(*taken).run()
            ends["completed"] += 1
    return ends


def main(folder: str, seconds: str) -> None:
    import django

    os.nice(NICENESS)
    django.setup()
    turns = Turns()
    turns.watch()
    ends = write_until(time.monotonic() + float(seconds), Path(folder, f"diary of {os.getpid()}"))
    print(json.dumps({**ends, "longest_wait": turns.longest_wait, "longest_hold": turns.longest_hold}))


if __name__ == "__main__":
    main(*sys.argv[1:])
