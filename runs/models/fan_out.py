"""One entry that stands for many children: how many there are, have begun, and have ended."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from runs.models.run import Run
from runs.models.statuses import CANCELLED, COMPLETED, CREATED, FAILED


class FanOut(models.Model):
    """Changed only under the lock of the parent run. Child number `item` is `Run(fan_out=self, item=item)`."""

    entry = models.OneToOneField("runs.LedgerEntry", on_delete=models.PROTECT, related_name="fan_out")
    total = models.PositiveIntegerField(help_text="How many children there will be.")
    at_once = models.PositiveIntegerField(help_text="How many of them may live at a time.")
    started = models.PositiveIntegerField(default=0, help_text="Those that have a row.")
    released = models.PositiveIntegerField(default=0, help_text="Those whose turn has come: the first ones.")
    passed = models.PositiveIntegerField(default=0, help_text="Of the released ones, those that have ended.")
    completed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.ended} of {self.total}"

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.cancelled

    @property
    def free(self) -> int:
        """For how many more the turn may come now."""
        return max(self.at_once - (self.released - self.passed), 0)

    @property
    def counts(self) -> dict[str, int]:
        return {"completed": self.completed, "failed": self.failed, "cancelled": self.cancelled}

    def count(self, child: Run) -> None:
        """One child has ended."""
        self.completed += child.status == COMPLETED
        self.failed += child.status == FAILED
        self.cancelled += child.status == CANCELLED
        self.passed += child.item < self.released

    def release(self, now: datetime) -> None:
        """Let the next ones begin, as far as there is room. One that was cancelled before its turn is passed over."""
        while self.free and self.released < self.started:
            waiting = Run.objects.filter(fan_out=self, item=self.released, status=CREATED, wake_at=None)
            began = waiting.update(wake_at=now)
            self.released += 1
            self.passed += not began
