"""What every kind of question shares: the ledger, the keys asked for so far, and where the execution stopped."""

from __future__ import annotations

from runs.core.commands import Work
from runs.core.keys import Keys
from runs.core.ledger import Ledger
from runs.core.outcomes import Stop


class Asking:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys = Keys()
        self.asked: set[str] = set()
        self.stopped: Stop | None = None

    def checked(self, work: Work) -> Work:
        """A node that swallowed a Stop gets it again at its next question; the executor looks here at the end."""
        if self.stopped is not None:
            raise self.stopped
        try:
            return (yield from work)
        except Stop as stop:
            self.stopped = stop
            raise
