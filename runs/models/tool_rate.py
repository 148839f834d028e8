"""How often a tool was called lately, by all workers: one row a rate, and one for each value that it is by."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import models, transaction
from django.db.models import Exists

from runs.core.rate import LONGEST_NAME, Rate, Window
from runs.engine import clock
from runs.models.run import Run
from runs.models.statuses import RUNNING


class ToolRateQuerySet(models.QuerySet["ToolRate"]):
    def let_through(
        self, run: UUID, fence: int, name: str, per_key: str, rate: Rate, *, in_line: bool
    ) -> float | None:
        """Count a call that is about to be made; 0.0 then, else after how many seconds to ask again.

        `in_line`: it has waited already. None if the run is not held under this fence any more; nothing is counted.
        """
        with transaction.atomic():
            row = self._locked(name, per_key)
            now = clock.now()
            window, wait = Window.read(row.window).ask(rate, now, in_line=in_line)
            held = Run.objects.filter(pk=run, fence=fence, status=RUNNING)
            kept = self.filter(Exists(held), pk=row.pk)
            if not kept.update(window=window.text, idle_at=window.idle_at(rate, now)):
                transaction.set_rollback(True)  # also a row that was made for it
                return None
        return wait

    def forget_idle(self, now: datetime) -> None:
        """Those in which nothing counts any more: a row made anew says the same."""
        self.filter(idle_at__lt=now).delete()

    def _locked(self, name: str, per_key: str) -> ToolRate:
        ours = self.select_for_update().filter(name=name, per_key=per_key)
        found = ours.first()
        while found is None:  # made by us or by another, and perhaps forgotten in between
            self.get_or_create(name=name, per_key=per_key)
            found = ours.first()
        return found


class ToolRate(models.Model):
    name = models.CharField(max_length=LONGEST_NAME)
    per_key = models.CharField(
        max_length=64, blank=True, default="", help_text="Digest of the value that it is by."
    )
    window = models.TextField(
        default="", help_text="The calls that still count, and how far the line reaches."
    )
    idle_at = models.DateTimeField(null=True, help_text="From when on nothing counts.")

    objects = ToolRateQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "per_key"], name="tool_rate_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.per_key[:8]}".rstrip()
