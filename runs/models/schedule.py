"""Runs that start by themselves: a schedule is a row, and each of its slots starts at most one run, whoever looks."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any  # inputs are any JSON or the graph's state model

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs import secrets, unstorable
from runs.core import codec, recurring
from runs.core.errors import CodecError, DurableError
from runs.core.recurring import CATCH_UP, LONGEST_CRON, LONGEST_NAME, Recurrence
from runs.core.words import storable_text
from runs.engine import clock
from runs.errors import Conflict, Invalid, Refusal, joined, told
from runs.models.repairs import refuse_nobody
from runs.models.rules import not_blank
from runs.models.run import Run

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser
    from django.utils.functional import Promise

    from runs.core.graph import Graph
    from runs.engine.starting import Start

log = logging.getLogger(__name__)

LONGEST_ZONE = LONGEST_FIELD = 100
LONGEST_FAULT = 2_000
AGAIN = timedelta(minutes=5)  # after a slot whose run could not be made
WRITTEN = ("graph", "name", "cron", "zone", "input", "slot_field", "catch_up", "most")  # by people
OVERDUE = timedelta(minutes=2)  # then nobody who lives serves its graph


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def active(self) -> ScheduleQuerySet:
        return self.filter(paused_at=None, withdrawn_at=None)

    def served(self) -> ScheduleQuerySet:
        """Those whose runs this process can make: it has the graph, and what the author declared."""
        from runs.engine.schedules import newest

        known = newest()
        made = Q(declared=False, graph__in=known)
        for graph in known.values():
            made |= Q(declared=True, graph=graph.name, name__in=list(graph.schedules))
        return self.active().filter(made, due_at__isnull=False)

    def make(
        self, graph: str, name: str, cron: str, *, by: AbstractBaseUser | None = None, **options: Any
    ) -> Schedule:
        """A schedule that begins with the next slot; options are its fields, `input` is a dict.

        Raises Invalid naming the fields that do not fit.
        """
        given, texts = options.pop("input", {}), {"graph": graph, "name": name, "cron": cron}
        texts |= {field: options.pop(field) for field in ("zone", "slot_field") if field in options}
        written = {field: "" if text is None else storable_text(str(text)) for field, text in texts.items()}
        made = Schedule(created_by=by, **written, **options)
        try:
            made.input = given if isinstance(given, str) else codec.dumps(given)
        except CodecError as error:
            raise Invalid(unstorable.fault(error), {"input": [unstorable.fault(error.reason)]}) from error
        made.put()
        return made


class Schedule(models.Model):
    graph = models.CharField(max_length=100, help_text=_("A run of its newest version starts at each slot."))
    name = models.CharField(max_length=LONGEST_NAME, help_text=_("It stands in the keys of the runs."))
    cron = models.CharField(
        max_length=LONGEST_CRON,
        help_text=_("Minute, hour, day of the month, month, day of the week: 30 2 * * 1-5."),
    )
    zone = models.CharField(
        "time zone", max_length=LONGEST_ZONE, default="UTC", help_text=_("Such as Europe/Berlin.")
    )
    input = models.TextField(default="{}", blank=True, help_text=_("The first state of each run, as JSON."))
    slot_field = models.CharField(
        max_length=LONGEST_FIELD,
        blank=True,
        default="",
        help_text=_("The field of the state that gets the moment at which the run was due; or none."),
    )
    catch_up = models.CharField(
        max_length=10,
        default=CATCH_UP[0],
        choices=(
            ("latest", _("the latest slot starts one run")),
            ("all", _("each of them starts a run, the latest so many")),
            ("none", _("nothing is started more than five minutes late")),
        ),
        help_text=_("When several slots have passed, because no worker was there."),
    )
    most = models.PositiveSmallIntegerField(
        "at most", default=10, help_text=_("So many runs for slots that have passed, where each starts one.")
    )
    declared = models.BooleanField(default=False, help_text=_("By the graph's author, in code."))
    version = models.IntegerField(default=0, help_text=_("The version of the graph that declared it."))
    done_until = models.DateTimeField(help_text=_("The slots up to here are dealt with."))
    due_at = models.DateTimeField(null=True, blank=True, help_text=_("When a worker should look next."))
    latest_slot = models.DateTimeField(null=True, blank=True, help_text=_("The latest that started a run."))
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True, default="")
    withdrawn_at = models.DateTimeField(null=True, blank=True, help_text=_("The code declares it no more."))
    fault = models.TextField(blank=True, default="", help_text=_("Why the latest slot has no run yet."))
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="schedules",
        help_text=_("Who asks for its runs, and may not approve what they do."),
    )

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["graph", "name"], name="schedule_name_once_a_graph"),
            models.CheckConstraint(condition=not_blank("name"), name="schedule_name_not_blank"),
            models.CheckConstraint(condition=Q(catch_up__in=CATCH_UP), name="schedule_catch_up_known"),
            models.CheckConstraint(
                condition=Q(due_at=None) | Q(paused_at=None, withdrawn_at=None),
                name="schedule_due_only_while_active",
            ),
        ]
        indexes = [
            # the chore: schedules whose slot has come
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="schedule_due"),
        ]

    def __str__(self) -> str:
        return f"{self.graph}: {self.name}"

    @property
    def recurrence(self) -> Recurrence:
        return Recurrence(self.cron, self.zone)

    @property
    def next_slot(self) -> datetime | None:
        """In its own time zone; None while it is paused or withdrawn."""
        if self.paused_at is not None or self.withdrawn_at is not None:
            return None
        slot = self.recurrence.after(self.done_until)
        return slot and self.recurrence.local(slot)

    def is_overdue(self, now: datetime) -> bool:
        return self.due_at is not None and self.due_at < now - OVERDUE

    def key_of(self, slot: datetime) -> str:
        """The key of the run that this slot starts: there is at most one."""
        return f"schedule:{self.name}:{slot.astimezone(UTC):%Y-%m-%dT%H:%MZ}"

    def clean(self) -> None:
        """What the columns alone do not say. Raises ValidationError by field."""
        faults: dict[str, list[str]] = {}
        for field, fault in recurring.faults(self.cron, self.zone, self.name, self.catch_up, self.most):
            faults.setdefault(field, []).append(fault)
        for field in ("name", "cron", "input", "slot_field"):
            try:
                secrets.refuse(getattr(self, field), field)
            except Invalid as refusal:
                faults.setdefault(field, []).extend(refusal.fields[field])
        if not faults and not self.declared:
            try:
                self._start_of(clock.now())
            except (Refusal, DurableError) as error:
                field = "graph" if isinstance(error, Refusal) and error.status == 404 else "input"
                said = error.message if isinstance(error, Refusal) else str(error)
                faults[field] = [secrets.guard().redact(said)]
        if faults:
            raise ValidationError(faults)

    # -- verbs

    def put(self) -> None:
        """Save what a person made, or changed of what a person made: it holds from the next slot on.

        Raises Invalid naming the fields that do not fit, Conflict if somebody has paused or resumed it meanwhile.
        """
        now = clock.now()
        self.cron = " ".join(self.cron.split())
        self.done_until, self.due_at, self.fault = now, None, ""
        try:
            self.full_clean()
        except ValidationError as error:
            fault = told(_("Schedule %(name)s: %(faults)s"), name=self.name, faults=" ".join(error.messages))
            raise Invalid(fault, error.message_dict) from error
        if self.paused_at is None:
            self.due_at = self.recurrence.after(now)
        if self._state.adding:
            self.save(force_insert=True)
            return
        changes = {name: getattr(self, name) for name in (*WRITTEN, "done_until", "due_at", "fault")}
        same = Schedule.objects.filter(pk=self.pk, declared=False, paused_at=self.paused_at)
        self._change(same.update(**changes), _("Schedule %(schedule)s was not changed."))

    def pause(self, by: str) -> None:
        """No slot starts a run until it is resumed, also not one that a worker is about to start."""
        refuse_nobody(by)
        now = clock.now()
        at_work = Schedule.objects.filter(pk=self.pk, paused_at=None)
        changes = {"paused_at": now, "paused_by": storable_text(by)[:200], "due_at": None}
        self._change(at_work.update(**changes), _("Schedule %(schedule)s was not paused."))

    def resume(self, by: str) -> None:
        """From the next slot on: those that passed meanwhile start nothing."""
        refuse_nobody(by)
        now = clock.now()
        seen = {"cron": self.cron, "zone": self.zone, "withdrawn_at": self.withdrawn_at}
        paused = Schedule.objects.filter(pk=self.pk, paused_at__isnull=False, **seen)
        due = None if self.withdrawn_at is not None else self.recurrence.after(now)
        self._change(
            paused.update(paused_at=None, paused_by="", done_until=now, due_at=due, fault=""),
            _("Schedule %(schedule)s was not resumed."),
        )
        log.info("Schedule %s was resumed by %s", self, by)

    def _change(self, changed: int, refusal: Promise) -> None:
        self.refresh_from_db()
        if not changed:
            state = _("It is not paused now. Look at it again.")
            if self.paused_at is not None:
                state = told(_("It is paused by %(who)s now. Look at it again."), who=self.paused_by)
            raise Conflict(joined([told(refusal, schedule=str(self)), state]))

    def fire(self) -> list[Run]:
        """Start what the slots that have passed owe, one transaction a slot, and set when to look next.

        Whoever else does it at the same moment, a slot starts one run; and none once it is paused.
        """
        from runs.engine.durably import durably

        now = clock.now()
        tried = bool(self.fault)
        slots = recurring.owed(self.recurrence, self.done_until, now, self.catch_up, self.most, tried)
        started: list[Run] = []
        for slot in slots:
            try:
                new = self._start_of(slot)
            except Exception as error:  # whatever the author's function raises
                self._put_off(slot, error, now)
                return started
            last = slot == slots[-1]
            try:
                started += durably(lambda new=new, slot=slot, last=last: self._start(new, slot, last, now))
            except Refusal as error:  # such as an input that is too large
                self._put_off(slot, error, now)
                return started
            self.done_until = slot
        if not slots:
            due = self.recurrence.after(now)
            self._still().update(done_until=max(now, self.done_until), due_at=due, fault="")
        return started

    def _start(self, new: Start, slot: datetime, last: bool, now: datetime) -> list[Run]:
        """The run of a slot, if the slot is still to be had: the row moves on in the same transaction."""
        with transaction.atomic():
            changes: dict[str, Any] = {"done_until": slot, "latest_slot": slot, "fault": ""}
            if last:
                changes["due_at"] = self.recurrence.after(now)
            if not self._still().update(**changes):
                return []
            try:
                return [new.create()]
            except IntegrityError:
                if not Run.objects.filter(graph=self.graph, key=new.key).exists():
                    raise
                return []  # somebody has started it under this key

    def _start_of(self, slot: datetime) -> Start:
        """The author's code is called here, outside of any transaction."""
        from runs.engine import schedules
        from runs.engine.starting import prepare

        graph: Graph = schedules.graph_named(self.graph)
        local = self.recurrence.local(slot)
        if self.declared:
            given = graph.schedules[self.name].fn(local)
        else:
            given = codec.loads(self.input or "{}")
            if self.slot_field:
                if not isinstance(given, dict):
                    raise Invalid(
                        told(_("The input is %(type)s; it must be an object."), type=type(given).__name__)
                    )
                given = {**given, self.slot_field: local}
        labels = {"schedule": self.name, "slot": local.isoformat()}
        return prepare(
            graph, given, self.key_of(slot), self.created_by, labels=labels, actor=f"schedule {self.name}"
        )

    def _put_off(self, slot: datetime, error: Exception, now: datetime) -> None:
        """The slot stays owed, and its fault is shown; with "none", it is the first one that does."""
        done = self.done_until
        if self.catch_up == "none":
            done = max(done, slot - timedelta(seconds=1))
        told = secrets.guard().redact(f"{slot:%Y-%m-%d %H:%M} UTC: {type(error).__name__}: {error}")
        self._still().update(done_until=done, due_at=now + AGAIN, fault=storable_text(told)[:LONGEST_FAULT])
        log.warning("Schedule %s has no run for a slot, and tries again in %s: %s", self, AGAIN, told)

    def _still(self) -> ScheduleQuerySet:
        """This row, if nobody has dealt with its slots, changed, paused or withdrawn it meanwhile."""
        same = {"pk": self.pk, "done_until": self.done_until, "cron": self.cron, "zone": self.zone}
        return Schedule.objects.active().filter(**same)
