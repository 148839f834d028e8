"""What a call has said so far, while it is under way: for those who watch, and no part of the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from runs.models.entry import LedgerEntry
from runs.models.run import Run
from runs.models.statuses import RUNNING


@dataclass(frozen=True, slots=True)
class Saying:
    """The newest text of one call. `letters` are all so far, of which `text` may be only the last."""

    run: UUID
    fence: int
    step: int
    key: str
    name: str
    text: str
    letters: int


class LiveTextQuerySet(models.QuerySet["LiveText"]):
    def show(self, said: Saying, now: datetime) -> bool:
        """The newest text in place of the one before; False if the run is not held under this fence any more."""
        held = Run.objects.filter(pk=said.run, fence=said.fence, status=RUNNING)
        ours = self.filter(run_id=said.run, step=said.step, key=said.key)
        newest = {
            "fence": said.fence,
            "name": said.name,
            "text": said.text,
            "letters": said.letters,
            "at": now,
        }
        if ours.filter(Exists(held)).update(**newest):
            return True
        if not held.exists():
            return False
        self.create(run_id=said.run, step=said.step, key=said.key, **newest)
        return True

    def hush(self, run: UUID, step: int, key: str) -> None:
        """The call is over: what it returned, if anything, is in the ledger."""
        self.filter(run_id=run, step=step, key=key).delete()

    def under_way(self) -> LiveTextQuerySet:
        """Without what a lost worker left, and without what is recorded already."""
        recorded = LedgerEntry.objects.filter(run=OuterRef("run"), step=OuterRef("step"), key=OuterRef("key"))
        return self.filter(run__status=RUNNING, run__fence=F("fence"), run__step=F("step") - 1).exclude(
            Exists(recorded.exclude(status="open"))
        )

    def forget_left(self) -> None:
        """What workers left behind that ended without word."""
        self.filter(~Q(run__status=RUNNING) | ~Q(run__fence=F("fence"))).delete()

    def sizes(self, most: int) -> Iterable[tuple[int, UUID, int, datetime]]:
        """What there is, in order, by what tells one look from the next: id, run, letters, moment."""
        return self.order_by("pk").values_list("pk", "run_id", "letters", "at")[:most]


class LiveText(models.Model):
    # Without a constraint: it is gone long before its run could be.
    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, related_name="live_texts", db_index=False, db_constraint=False
    )
    step = models.IntegerField()
    key = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    fence = models.BigIntegerField()
    text = models.TextField()
    letters = models.IntegerField(help_text="All that it said so far; of a long one only the end is kept.")
    at = models.DateTimeField()

    objects = LiveTextQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step", "key"], name="live_text_once_a_call")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.key}: {self.letters} letters"

    @property
    def cut(self) -> bool:
        return self.letters > len(self.text)
