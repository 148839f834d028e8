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

    def count(self, child: Run, by: int = 1) -> None:
        """One child has ended, as its parent was told; or, by -1, had ended, and goes on."""
        self.completed += by * (child.told == COMPLETED)
        self.failed += by * (child.told == FAILED)
        self.cancelled += by * (child.told == CANCELLED)
        self.passed += by * (child.item < self.released)

    def release(self, now: datetime) -> int:
        """Let the next ones begin, as far as there is room; how many began.

        One that was cancelled before its turn is passed over, and so is one that lives already, for it was repaired by
        itself: if its end was counted already, its place is free again, else it will be with that. But one that was
        cancelled with its parent, which goes on, goes on as well.
        """
        began = 0
        goes_on = models.Q(status=CANCELLED, told="", untold_end=None)
        while (room := self.free) and self.released < self.started:
            left = Run.objects.filter(fan_out=self, item__gte=self.released)
            waiting = left.filter(models.Q(status=CREATED, wake_at=None) | goes_on)
            items = list(waiting.order_by("item").values_list("item", flat=True)[:room])
            turn = range(self.released, items[-1] + 1 if len(items) == room else self.started)
            now_began = left.filter(item__in=items, status=CREATED, wake_at=None).update(wake_at=now)
            if now_began < len(items):
                now_began += self._revive(left.filter(goes_on, item__in=items), now)
            self.released = turn.stop
            if len(turn) > now_began:
                told = Run.objects.filter(fan_out=self, item__gte=turn.start, item__lt=turn.stop).exclude(
                    told=""
                )
                self.passed += (
                    told.count()
                )  # the ends of others, untold or still to come, count when they are told
            began += now_began
        return began

    def _revive(self, children: models.QuerySet[Run], now: datetime) -> int:
        from runs.engine import taking_up

        found = list(children.order_by("item").select_for_update(of=("self",)))
        for child in found:
            taking_up.revive(child.parent, child, now)
        return len(found)
