"""One entry that stands for many children: how many there are, have begun, and have ended."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from runs.models.run import Run
from runs.models.statuses import CANCELLED, COMPLETED, CREATED, FAILED
from runs.models.untold_end import UntoldEnd


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
        self.completed += child.told == COMPLETED
        self.failed += child.told == FAILED
        self.cancelled += child.told == CANCELLED
        self.passed += child.item < self.released

    def release(self, now: datetime) -> int:
        """Let the next ones begin, as far as there is room; how many began.

        One that was cancelled before its turn is passed over: if its end was counted already, its place is free again,
        else it will be with that.
        """
        began = 0
        while (room := self.free) and self.released < self.started:
            waiting = Run.objects.filter(fan_out=self, item__gte=self.released, status=CREATED, wake_at=None)
            items = list(waiting.order_by("item").values_list("item", flat=True)[:room])
            turn = range(self.released, items[-1] + 1 if len(items) == room else self.started)
            now_began = waiting.filter(item__in=items).update(wake_at=now)
            self.released = turn.stop
            if over := len(turn) - now_began:
                untold = UntoldEnd.objects.filter(
                    child__fan_out=self, child__item__gte=turn.start, child__item__lt=turn.stop
                )
                self.passed += over - untold.count()
            began += now_began
        return began
