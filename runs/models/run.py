"""One execution of a graph: a narrow row that is also its own place in the queue."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models, transaction
from django.db.models import CharField, Q, Value
from django.db.models.functions import Cast, Replace

from runs import secrets
from runs.engine import clock
from runs.engine.ids import uuid7
from runs.errors import Conflict, Invalid, Missing
from runs.models.rules import Rule
from runs.models.statuses import CANCELLED, ENDED, FAILED, LIVE, STATUSES

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from runs.models.checkpoint import Checkpoint

LONGEST_REASON = 10_000
PRIORITIES = ((0, "urgent"), (1, "high"), (2, "normal"), (3, "low"))


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        """The only door: who started it, on whose behalf, who views or operates its graph, who may or did decide."""
        from runs.sight import visible

        return visible(self, user)

    def lock(self, run_id: uuid.UUID) -> tuple[Run, datetime]:
        """The run, locked for the rest of the transaction, and the database's time read after the lock."""
        try:
            run = self.select_for_update(of=("self",)).get(pk=run_id)
        except Run.DoesNotExist:
            raise Missing(f"There is no run {run_id}.") from None
        return run, clock.now()

    def named(self, name: str) -> Run:
        """By id, or by the last digits of it that people see. Raises Missing, or Conflict when several fit."""
        digits = name.replace("-", "").lower()
        if len(digits) == 32:
            found = self.filter(pk=_uuid(name, digits))
        elif len(digits) >= 6 and set(digits) <= set("0123456789abcdef"):
            found = self.annotate(digits=Replace(Cast("id", CharField()), Value("-"))).filter(
                digits__endswith=digits
            )
        else:
            raise Missing(f"There is no run {name!r}; give its id, or the last six digits of it.")
        runs = list(found[:2])
        if not runs:
            raise Missing(f"There is no run {name!r}.")
        if len(runs) > 1:
            raise Conflict(f"Several runs end in {name!r}; give the whole id.")
        return runs[0]

    def live(self) -> RunQuerySet:
        return self.filter(status__in=LIVE)

    def due(self, now: datetime) -> RunQuerySet:
        return self.filter(wake_at__lte=now)

    def dead_letters(self) -> RunQuerySet:
        """Failed runs that want an operator: rejected and expired ones ended as people meant them to."""
        return self.filter(status=FAILED, closed_at=None).exclude(error_kind__in=("rejected", "expired"))


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    graph = models.CharField(max_length=100)
    version = models.IntegerField()
    status = models.CharField(max_length=12, default="created")
    ending = models.CharField(max_length=12, blank=True, default="")
    node = models.CharField(max_length=100)
    step = models.IntegerField(default=0, help_text="Nodes committed.")
    seq = models.IntegerField(default=0, help_text="The latest checkpoint.")
    attempt = models.IntegerField(default=0, help_text="Tries of the current step, anew after a wait.")
    wake_at = models.DateTimeField(null=True, blank=True, help_text="When a worker should look next.")
    queue = models.CharField(max_length=50, default="default")
    priority = models.SmallIntegerField(default=2, choices=PRIORITIES)
    fence = models.BigIntegerField(
        default=0, help_text="Grows with each claim and each verb that takes the run."
    )
    leased_by = models.CharField(max_length=120, null=True, blank=True)
    answers = models.BigIntegerField(default=0, help_text="How many answers were accepted.")
    deaths = models.IntegerField(default=0, help_text="Claims, driven alone, that ended without word.")
    silent = models.IntegerField(default=0, help_text="Claims that ended without word since progress.")
    alone = models.BooleanField(default=False, help_text="The present claim drives it alone in its process.")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    root = models.UUIDField(help_text="Correlation id: the run at the top of the family.")
    key = models.CharField(max_length=200, null=True, blank=True)
    labels = models.TextField(default="{}")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_started"
    )
    on_behalf_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_for"
    )
    error_kind = models.CharField(max_length=12, blank=True, default="")
    error = models.TextField(blank=True, default="")
    head = models.CharField(
        max_length=64, blank=True, default="", help_text="Digest of the latest checkpoint."
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    keep = models.BooleanField(default=False, help_text="Retention hold.")

    objects = RunQuerySet.as_manager()

    class Meta:
        permissions = [
            ("view_all", "Can see every run"),
            ("repair", "Can repair runs of every graph"),
            ("audit", "Can read the trail of every run"),
        ]
        constraints = [
            Rule(condition=Q(status__in=STATUSES), name="run_status_known"),
            Rule(condition=Q(wake_at=None) | ~Q(status__in=ENDED), name="run_ended_never_wakes"),
            Rule(
                condition=Q(status="waiting") | Q(status__in=ENDED) | Q(wake_at__isnull=False),
                name="run_live_always_wakes",
            ),
            Rule(condition=Q(leased_by=None) | Q(status="running"), name="run_lease_only_while_running"),
            Rule(condition=Q(key=None) | Q(key__regex=r"\S"), name="run_key_not_blank"),
            Rule(condition=Q(graph__regex=r"\S"), name="run_graph_not_blank"),
            Rule(condition=Q(priority__range=(0, 3)), name="run_priority_known"),
            models.UniqueConstraint(fields=["graph", "key"], name="run_key_once_a_graph"),
        ]
        indexes = [
            # the claim: due runs by priority, then by how long they have waited
            models.Index(
                fields=["queue", "priority", "wake_at"], condition=Q(wake_at__isnull=False), name="run_due"
            ),
            models.Index(fields=["graph", "-id"], name="run_of_graph"),  # the list of one graph, newest first
            models.Index(fields=["root"], name="run_of_family"),
            models.Index(fields=["status", "-id"], name="run_by_status"),  # the list by status, and Repair
        ]

    def __str__(self) -> str:
        return f"{self.graph} {self.short_id}"

    @property
    def short_id(self) -> str:
        """The last six hex digits: uuid7's first ones are a clock and look alike."""
        return self.id.hex[-6:] if isinstance(self.id, uuid.UUID) else str(self.id)[-6:]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    def get_absolute_url(self) -> str:
        from django.urls import reverse

        return reverse("runs:run", args=[self.id])

    def state_at(self, seq: int | None = None) -> object:
        """The state at a checkpoint (the latest by default), as a plain tree. Raises CodecError."""
        from runs.engine.state import StoredState

        return StoredState.load(self.id, self.seq if seq is None else seq).tree

    def cancel(self, by: str, reason: str) -> Checkpoint:
        """End the run now, whoever drives it: the fence is raised, open questions close, an open write is in doubt.

        Raises Invalid for a reason that is missing or may not be stored, Conflict when the run has ended.
        """
        from runs.engine.closing import close_step
        from runs.engine.transition import move
        from runs.hooks import run_ended

        if not reason.strip():
            raise Invalid("Say why the run is cancelled.", {"reason": ["A reason is needed."]})
        if len(reason) > LONGEST_REASON:
            said = f"Too long: {len(reason)} characters, {LONGEST_REASON} are the most."
            raise Invalid(f"reason: {said}", {"reason": [said]})
        secrets.refuse(reason, "reason")
        with transaction.atomic():
            run, now = Run.objects.lock(self.pk)
            if run.status not in LIVE:
                raise Conflict(f"Run {run.short_id} is {run.status}; only a live run can be cancelled.")
            lines = close_step(run, "cancelled", now, ended=True)
            checkpoint = move(
                run,
                "cancel",
                now,
                actor=by,
                reason=reason,
                lines=lines.values(),
                status=CANCELLED,
                wake_at=None,
                leased_by=None,
                fence=run.fence + 1,
                finished_at=now,
            )
            run_ended.send(sender=Run, run=run, now=now)
        self.refresh_from_db()
        return checkpoint


def _uuid(name: str, digits: str) -> uuid.UUID:
    try:
        return uuid.UUID(digits)
    except ValueError:
        raise Missing(f"There is no run {name!r}.") from None
