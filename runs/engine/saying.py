"""Texts that calls say while they are under way, brought into their rows a few times a second by one thread a process.

Neither the call nor the event loop waits for the database: what is said is only kept here, until the next round.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from django.db import connection, transaction

from runs import secrets
from runs.core.words import storable_text
from runs.engine import clock
from runs.models.live_text import LiveText, Saying

log = logging.getLogger(__name__)

ROUND_SECONDS = 0.25
IDLE_ROUNDS = 8  # then the thread ends, and the next text begins another
SHOWN_LETTERS = 6_000  # of a longer text, its end
A_COMMIT = 50  # texts


class Speaker:
    """What one call says, through any thread: `speaker(more)`. Nothing that is wrong here is the call's failure."""

    def __init__(self, run: object, fence: int, step: int, key: str, name: str) -> None:
        self.run, self.fence, self.step, self.key, self.name = run, fence, step, key, name
        self.heard: list[str] = []
        self.told, self.rest, self.letters = "", "", 0
        self.over = self.has_row = False

    def __call__(self, more: str) -> None:
        if more and not self.over:
            self.heard.append(str(more))
            rounds.have(self)

    def end(self) -> None:
        """Nothing more is shown; on return no write of it is under way."""
        self.over = True
        rounds.leave_out(self)

    def newest(self) -> Saying:
        """Without what is, or may become, the value of a secret."""
        many = len(self.heard)
        fresh, self.heard[:many] = "".join(self.heard[:many]), []
        guard = secrets.guard()
        more, self.rest = guard.redact_begun(self.rest + fresh)
        more = storable_text(more, longest=len(more) * 10)
        self.letters += len(more)
        self.told = (self.told + more)[-SHOWN_LETTERS:]
        return Saying(self.run, self.fence, self.step, self.key, self.name, self.told, self.letters)


class Rounds:
    """One a process: `rounds`."""

    def __init__(self) -> None:
        self.news: set[Speaker] = set()
        self.noting, self.writing = threading.Lock(), threading.Lock()
        self.thread: threading.Thread | None = None

    def have(self, speaker: Speaker) -> None:
        if speaker in self.news:
            return
        with self.noting:
            self.news.add(speaker)
            if self.thread is None:
                self.thread = threading.Thread(target=self._go, name="live texts", daemon=True)
                self.thread.start()

    def leave_out(self, speaker: Speaker) -> None:
        with self.noting:
            self.news.discard(speaker)
        with self.writing:
            pass

    def _go(self) -> None:
        idle = 0
        while True:
            time.sleep(ROUND_SECONDS)
            with self.noting:
                idle = 0 if self.news else idle + 1
                if idle >= IDLE_ROUNDS:
                    self.thread = None
                    return
            if idle:
                connection.close()
                continue
            try:
                self.write()
            except Exception as error:
                log.warning("Texts under way are not shown for a moment: %s", error)
                connection.close()

    def write(self) -> None:
        """One round: all that is new, in a few short transactions."""
        while True:
            with self.writing:
                with self.noting:
                    some = [self.news.pop() for _ in range(min(len(self.news), A_COMMIT))]
                some = [one for one in some if not one.over]
                if not some:
                    return
                said = [(one, one.newest()) for one in some]
                for one in some:
                    one.has_row = True  # also if the answer to the commit is lost
                with transaction.atomic():
                    now = clock.now()
                    lost = [one for one, newest in said if not LiveText.objects.show(newest, now)]
                for one in lost:
                    one.over = True  # the run was taken from us


rounds = Rounds()


def _begin_anew() -> None:
    """In a forked child nobody writes, and no lock is held."""
    rounds.__init__()


os.register_at_fork(after_in_child=_begin_anew)
