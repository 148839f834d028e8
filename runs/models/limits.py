"""How many runs of a queue are driven at once, and how many start in a time: in all, and for each lane."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, validate_integer
from django.db import connection, models
from django.db.models import Count, Exists, OuterRef, Q, Value
from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.core.rate import Window
from runs.core.words import is_storable, storable_text
from runs.engine import clock
from runs.errors import Conflict, Invalid, Missing, joined, told
from runs.models.checkpoint import Checkpoint
from runs.models.repairs import LONGEST_REASON, refuse_nobody
from runs.models.rules import not_blank
from runs.models.run import LONGEST_LANE, Run, RunQuerySet
from runs.models.statuses import CREATED, RUNNING

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MOST = 1_000_000_000
LONGEST_PERIOD = 366 * 24 * 60 * 60  # seconds
NUMBERS = ("at_once", "at_once_a_lane", "starts", "starts_a_lane", "per_seconds")

# Lanes with a due run: each is found by one step in the index run_in_lane, however many runs it has.
LANES = """
WITH RECURSIVE found(lane) AS (
  SELECT MIN(lane) FROM runs_run WHERE queue = %s AND lane <> '' AND wake_at IS NOT NULL AND wake_at <= %s
  UNION ALL
  SELECT (SELECT MIN(r.lane) FROM runs_run r WHERE r.queue = %s AND r.lane <> '' AND r.lane > found.lane
          AND r.wake_at IS NOT NULL AND r.wake_at <= %s)
  FROM found WHERE found.lane IS NOT NULL
) SELECT lane FROM found WHERE lane IS NOT NULL"""


def not_begun() -> Q:
    """Nobody has taken it yet. It is running all the same if it was migrated before, or repaired after a cancel."""
    claims = Checkpoint.objects.filter(run=OuterRef("pk"), kind="claim")
    return Q(status=CREATED) | Q(status=RUNNING) & ~Exists(claims)


@dataclass(frozen=True, slots=True)
class Room:
    """What may be taken from a queue now. Lanes: `full` have as many as may be, of `spent` none may start."""

    any: bool
    may_start: bool
    full: frozenset[str]
    spent: frozenset[str]

    def admits(self) -> Q:
        if not self.any:
            return Q(pk__in=[])
        found = Q() if self.may_start else ~not_begun()
        if self.full:
            found &= ~Q(lane__in=self.full)
        if self.spent and self.may_start:
            found &= ~(Q(lane__in=self.spent) & not_begun())
        return found


class QueueLimitQuerySet(models.QuerySet["QueueLimit"]):
    def put(self, queue: str, **numbers: int | None) -> QueueLimit:
        """Set the limits of a queue; what is not named is unlimited. Raises Invalid naming the fields."""
        clean = {name: storable_text(n) if isinstance(n, str) else n for name, n in numbers.items()}
        made = QueueLimit(queue=queue if isinstance(queue, str) and is_storable(queue) else "", **clean)
        secrets.refuse(made.queue, "queue")
        try:
            made.full_clean(validate_unique=False)
        except ValidationError as error:
            fault = told(_("Queue %(queue)s: %(faults)s"), queue=made.queue, faults=" ".join(error.messages))
            raise Invalid(fault, error.message_dict) from error
        values = {name: getattr(made, name) for name in NUMBERS}
        return self.update_or_create(queue=queue, defaults=values)[0]


class QueueLimit(models.Model):
    queue = models.CharField(max_length=50, unique=True)
    at_once = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=_("Runs driven at a time.")
    )
    at_once_a_lane = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=_("The same of each lane.")
    )
    starts = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=_("Runs that begin in a period.")
    )
    starts_a_lane = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=_("The same of each lane.")
    )
    per_seconds = models.PositiveIntegerField(
        default=60, validators=[MinValueValidator(1)], help_text=_("How long the period is.")
    )
    free_at = models.DateTimeField(
        default=NEVER, editable=False, help_text="From when on one more may start."
    )
    window = models.TextField(
        default="", db_default="", editable=False, help_text="The starts that still count."
    )

    objects = QueueLimitQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=not_blank("queue"), name="limit_queue_not_blank"),
            models.CheckConstraint(condition=Q(per_seconds__gte=1), name="limit_has_a_period"),
        ]

    def __str__(self) -> str:
        return self.queue

    def save(self, *args: Any, **more: Any) -> None:
        """Other numbers hold at once, also for what has started before."""
        now = clock.now()
        self.free_at = self._free_at(self.starts, self.window, now)
        if more.get("update_fields") is not None:
            more["update_fields"] = {*more["update_fields"], "free_at"}
        super().save(*args, **more)
        if self.starts_a_lane is not None:
            for use in self.uses.filter(idle_at__gt=now):
                use.free_at = self._free_at(self.starts_a_lane, use.window, now)
                use.idle_at = now + timedelta(seconds=self.per_seconds)
                use.save(update_fields=["free_at", "idle_at"])

    def clean(self) -> None:
        faults = {}
        for name in NUMBERS:
            number, most = getattr(self, name), LONGEST_PERIOD if name == "per_seconds" else MOST
            try:
                if number is not None and not isinstance(number, int):
                    validate_integer(number)
                elif number is not None:
                    MaxValueValidator(most)(number)
            except ValidationError as error:
                faults[name] = error.messages
        if faults:
            raise ValidationError(faults)
        if all(getattr(self, name) is None for name in NUMBERS[:-1]):
            raise ValidationError(_("Give at least one number, or remove the limit."))

    def room(self, now: datetime) -> Room:
        """By what is committed: under the lock of this row, and counted after it, nobody else takes one meanwhile."""
        driven = Run.objects.filter(status=RUNNING, queue=self.queue, leased_by__isnull=False)
        room, full, spent = True, [], []
        if self.at_once is not None:
            room = driven.count() < self.at_once
        if self.at_once_a_lane is not None:
            by_lane = driven.exclude(lane="").order_by().values_list("lane").annotate(runs=Count("pk"))
            full = [lane for lane, runs in by_lane if runs >= self.at_once_a_lane]
        if self.starts_a_lane is not None:
            spent = self.uses.filter(free_at__gt=now).exclude(lane="").values_list("lane", flat=True)
        may_start = self.starts is None or self.free_at <= now
        return Room(room, may_start, frozenset(full), frozenset(spent))

    def next_of(self, runs: RunQuerySet, now: datetime, order: list[str]) -> Run | None:
        """The run to take, locked, under the lock of this row. A run that a dead worker left frees what it held."""
        locked = {"skip_locked": True, "of": ("self",)}
        left = runs.filter(leased_by__isnull=False).order_by("wake_at").select_for_update(**locked).first()
        if left is not None:
            return left
        room = self.room(now)
        if not room.any:
            return None
        free = runs.filter(room.admits(), leased_by=None).order_by(*order)
        for lane in self._lanes(now):
            if lane not in room.full:
                run = free.filter(lane=lane).select_for_update(**locked).first()
                if run is not None:
                    return run
        return None

    def took(self, run: Run, now: datetime) -> None:
        """Count a claim, before its checkpoint is written; and a start, if it is the run's first one."""
        lane, counts = run.lane, (self.starts, self.starts_a_lane) != (None, None)
        starts = counts and Run.objects.filter(not_begun(), pk=run.pk).exists()
        if starts and self.starts is not None:
            self.window = Window.read(self.window).count(self.starts, self.per_seconds, now).text
            self.free_at = self._free_at(self.starts, self.window, now)
            QueueLimit.objects.filter(pk=self.pk).update(window=self.window, free_at=self.free_at)
        use, _made = LaneUse.objects.get_or_create(limit=self, lane=lane, defaults={"served_at": now})
        changes = {"served_at": now}
        if starts and self.starts_a_lane is not None:
            window = Window.read(use.window).count(self.starts_a_lane, self.per_seconds, now).text
            changes |= {"window": window, "free_at": self._free_at(self.starts_a_lane, window, now)}
            changes["idle_at"] = now + timedelta(seconds=self.per_seconds)
        LaneUse.objects.filter(pk=use.pk).update(**changes)

    def _free_at(self, starts: int | None, window: str, now: datetime) -> datetime:
        return NEVER if starts is None else Window.read(window).free_at(starts, self.per_seconds, now)

    def _lanes(self, now: datetime) -> list[str]:
        """Those with a due run, the one that was served longest ago first; runs without a lane are one of them."""
        moment = connection.ops.adapt_datetimefield_value(now)
        with connection.cursor() as cursor:
            cursor.execute(LANES, [self.queue, moment, self.queue, moment])
            lanes = ["", *(row[0] for row in cursor.fetchall())]
        served = dict(self.uses.values_list("lane", "served_at")) if len(lanes) > 1 else {}
        return sorted(lanes, key=lambda lane: (served.get(lane, NEVER), lane))


class LaneUse(models.Model):
    """When a lane of a limited queue was served, so that the next one is another's, and what has started in it."""

    limit = models.ForeignKey(QueueLimit, on_delete=models.CASCADE, related_name="uses", db_index=False)
    lane = models.CharField(max_length=LONGEST_LANE, blank=True)
    served_at = models.DateTimeField()
    free_at = models.DateTimeField(default=NEVER, help_text="From when on one more may start.")
    window = models.TextField(default="", db_default="", help_text="The starts that still count.")
    idle_at = models.DateTimeField(
        default=NEVER, db_default=Value(NEVER), help_text="From when on none of them counts."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit", "lane"], name="lane_use_once")]

    def __str__(self) -> str:
        return f"{self.limit} {self.lane}"

    @classmethod
    def forget_old(cls, now: datetime) -> None:
        """Lanes that were not served for a day, and of whose starts none counts any more."""
        cls.objects.filter(served_at__lt=now - timedelta(days=1), idle_at__lt=now).delete()


class GraphStopQuerySet(models.QuerySet["GraphStop"]):
    def stop(self, graph: str, by: str, reason: str) -> GraphStop:
        """From now on no worker takes a run of the graph; what is driven goes on. Raises Invalid, Conflict."""
        refuse_nobody(by)
        self.refuse_unfit(graph, reason)
        defaults: dict[str, Any] = {"by": storable_text(by)[:200], "reason": reason, "at": clock.now()}
        made, new = self.get_or_create(graph=graph, defaults=defaults)
        if not new:
            raise Conflict(
                told(
                    _("Graph %(graph)s was stopped by %(who)s already: %(reason)s"),
                    graph=graph,
                    who=made.by,
                    reason=made.reason,
                )
            )
        return made

    def refuse_unfit(self, graph: str, reason: str) -> None:
        """Raises Invalid naming the fields that do not fit."""
        said = {}
        if not _says(graph, 100):
            said["graph"] = [_("Give the name of a graph.")]
        if not _says(reason, LONGEST_REASON):
            said["reason"] = [told(_("Say why, in at most %(most)s characters."), most=LONGEST_REASON)]
        if said:
            raise Invalid(joined([word for words in said.values() for word in words]), said)
        secrets.refuse(graph, "graph")
        secrets.refuse(reason, "reason")

    def lift(self, graph: str) -> None:
        if not _says(graph, 100) or not self.filter(graph=graph).delete()[0]:
            raise Missing(told(_("Graph %(graph)s is not stopped."), graph=storable_text(str(graph))))


def _says(text: object, most: int) -> bool:
    return isinstance(text, str) and bool(text.strip()) and len(text) <= most and is_storable(text)


class GraphStop(models.Model):
    graph = models.CharField(max_length=100, unique=True)
    reason = models.TextField()
    by = models.CharField(max_length=200, editable=False)
    at = models.DateTimeField(editable=False)

    objects = GraphStopQuerySet.as_manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=not_blank("graph"), name="stop_graph_not_blank")]

    def __str__(self) -> str:
        return self.graph
