"""One execution of a graph: a narrow row that is also its own place in the queue."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models, transaction
from django.db.models import CharField, Q, Value
from django.db.models.functions import Cast, Replace
from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.engine import clock
from runs.engine.ids import uuid7
from runs.errors import Conflict, Invalid, Missing, told
from runs.models.rules import Rule
from runs.models.statuses import CANCELLED, ENDED, FAILED, LIVE, STATUSES

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.utils.functional import Promise

    from runs.models.checkpoint import Checkpoint
    from runs.models.remark import Remark
    from runs.models.signal import Signal
    from runs.models.tombstone import Tombstone

LONGEST_REASON = 10_000
LONGEST_LANE = 100
MOST_AT_ONCE = 100  # children that a cancel cancels itself; workers go on with the rest
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
            raise Missing(f"There is no run {name!r}; give its id, or the last six or more digits of it.")
        runs = list(found[:2])
        if not runs and len(digits) < 32:
            raise Missing(
                f"There is no run whose id ends in {name!r}; the last six or more digits are taken."
            )
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
    ending = models.CharField(
        max_length=12, blank=True, default="", help_text="How it ends once what it did is undone."
    )
    node = models.CharField(max_length=100)
    step = models.IntegerField(default=0, help_text="Nodes committed.")
    seq = models.IntegerField(default=0, help_text="The latest checkpoint.")
    attempt = models.IntegerField(default=0, help_text="Tries of the current step, anew after a wait.")
    wake_at = models.DateTimeField(null=True, blank=True, help_text="When a worker should look next.")
    queue = models.CharField(max_length=50, default="default")
    priority = models.SmallIntegerField(default=2, choices=PRIORITIES)
    lane = models.CharField(
        max_length=LONGEST_LANE,
        blank=True,
        default="",
        help_text="Whose turn it takes in a limited queue, such as a customer's.",
    )
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
    depth = models.SmallIntegerField(default=0, help_text="How many ancestors it has.")
    detached = models.BooleanField(default=False, help_text="It goes on when its parent ends.")
    fan_out = models.ForeignKey(
        "runs.FanOut",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="children",
        db_index=False,
        help_text="The fan-out of its parent that it is one of.",
    )
    item = models.IntegerField(null=True, blank=True, help_text="Its number there, from 0.")
    told = models.CharField(
        max_length=12,
        blank=True,
        default="",
        help_text="The status that its parent was told, once, after its end.",
    )
    cascade_at = models.DateTimeField(
        null=True, blank=True, help_text="It has ended: when to go on cancelling what it leaves behind."
    )
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
    kept = models.BooleanField(
        default=False, help_text="At the top of a family: it is neither erased nor archived."
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        permissions = [
            ("view_all", "Can see every run"),
            ("repair", "Can repair runs of every graph"),
            ("audit", "Can read the trail of every run"),
            ("erase", "Can keep runs, and erase ended ones"),
        ]
        constraints = [
            Rule(condition=Q(status__in=STATUSES), name="run_status_known"),
            Rule(condition=Q(wake_at=None) | ~Q(status__in=ENDED), name="run_ended_never_wakes"),
            Rule(
                condition=Q(status="waiting")
                | Q(status__in=ENDED)
                | Q(wake_at__isnull=False)
                | Q(status="created", fan_out__isnull=False),  # its turn has not come
                name="run_live_always_wakes",
            ),
            Rule(condition=Q(leased_by=None) | Q(status="running"), name="run_lease_only_while_running"),
            Rule(
                condition=Q(ending="")
                | Q(ending__in=(FAILED, CANCELLED), status__in=("running", "waiting", "retrying")),
                name="run_ending_while_compensated",
            ),
            Rule(condition=Q(key=None) | Q(key__regex=r"\S"), name="run_key_not_blank"),
            Rule(condition=Q(graph__regex=r"\S"), name="run_graph_not_blank"),
            Rule(condition=Q(priority__range=(0, 3)), name="run_priority_known"),
            Rule(condition=Q(item=None) | Q(item__gte=0), name="run_item_not_negative"),
            models.UniqueConstraint(fields=["graph", "key"], name="run_key_once_a_graph"),
            # also the index of a fan-out's children, in order
            models.UniqueConstraint(
                fields=["fan_out", "item"], condition=Q(fan_out__isnull=False), name="run_once_an_item"
            ),
        ]
        indexes = [
            # the claim: due runs by priority, then by how long they have waited
            models.Index(
                fields=["queue", "priority", "wake_at"], condition=Q(wake_at__isnull=False), name="run_due"
            ),
            # lanes of a limited queue that have a due run; runs without a lane are not in it
            models.Index(
                fields=["queue", "lane", "wake_at"],
                condition=Q(wake_at__isnull=False) & ~Q(lane=""),
                name="run_in_lane",
            ),
            models.Index(fields=["graph", "-id"], name="run_of_graph"),  # the list of one graph, newest first
            models.Index(fields=["root"], name="run_of_family"),
            models.Index(fields=["status", "-id"], name="run_by_status"),  # the list by status, and Repair
            # the chore: what ended runs leave behind
            models.Index(fields=["cascade_at"], condition=Q(cascade_at__isnull=False), name="run_to_cascade"),
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

    def signal(self, name: str, payload: object = None, key: str | None = None, by: str = "system") -> Signal:
        """Tell the run something; it is kept until a node waits for a signal of that name, and wakes a waiting run.

        The same `key` is accepted once: sent again, it returns the signal that is there. Raises Invalid for what may
        not be stored, Conflict when the run has ended or the key was used for something else.
        """
        from runs.engine.durably import durably
        from runs.models.entry import wake
        from runs.models.signal import Letter

        letter = Letter(name, payload, key, by)

        def put() -> Signal:
            with transaction.atomic():
                run, now = Run.objects.lock(self.pk)
                if (there := letter.earlier(run)) is not None:
                    return there
                signal = letter.put(run, now)
                wake(run, now)
            return signal

        return put() if key is None else durably(put)  # without a key, a second try might be a second signal

    def migrate(self, by: str, reason: str) -> Checkpoint:
        """Take a live run to the newest version that its own can be migrated to here, whoever drives it.

        The fence is raised, and the run is due now: its node is executed anew. A worker does it by itself once nobody
        serves the run's version; this is for before that. Raises Invalid for a reason that is missing or may not be
        stored, Conflict when it cannot be.
        """
        from runs.engine import migrating

        _refuse_unfit(reason, _("Say why the run is migrated."))
        checkpoint = migrating.migrate(self.pk, by, reason)
        self.refresh_from_db()
        return checkpoint

    def cancel(self, by: str, reason: str, compensate: bool = False) -> Checkpoint:
        """End the run now, whoever drives it: the fence is raised, open questions close, an open write is in doubt.

        Its children are cancelled as well, unless they are detached: many of them soon after, by workers. With
        `compensate` workers first undo what it did, as its tools declare, and then it is cancelled. Cancelled
        without it while that goes on, it ends at once, and the rest stays done. Raises Invalid for a reason that is
        missing or may not be stored, Conflict when the run has ended or is undoing what it did already.
        """
        from runs.engine import compensating
        from runs.engine.closing import close_step
        from runs.engine.family import cancel_children, ended
        from runs.engine.transition import move

        _refuse_unfit(reason, _("Say why the run is cancelled."))
        with transaction.atomic():
            run, now = Run.objects.lock(self.pk)
            if run.status not in LIVE:
                raise Conflict(
                    told(
                        _("Run %(run)s is %(word)s; only a live run can be cancelled."),
                        run=run.short_id,
                        word=run.status,
                    )
                )
            if compensate and run.ending:
                raise Conflict(told(_("Run %(run)s is undoing what it did already."), run=run.short_id))
            if compensate and compensating.is_needed(run.pk):
                checkpoint = compensating.begin(run, now, CANCELLED, actor=by, reason=reason)
                self.refresh_from_db()
                return checkpoint
            lines = close_step(run, "cancelled", now, ended=True)
            checkpoint = move(
                run,
                "cancel",
                now,
                actor=by,
                reason=reason,
                lines=lines.values(),
                status=CANCELLED,
                ending="",
                wake_at=None,
                leased_by=None,
                fence=run.fence + 1,
                finished_at=now,
            )
            ended(run, now)
        if run.cascade_at is not None:
            cancel_children(run.pk, most=MOST_AT_ONCE)
        self.refresh_from_db()
        return checkpoint

    def keep(self, reason: str, by: str) -> Remark:
        """Hold the run and its whole family back from erasure and archive; live or ended, whoever drives it.

        Raises Invalid for a reason that is missing or may not be stored, Conflict when it is kept, or erased, already.
        """
        from runs.engine import keeping

        _refuse_unfit(reason, _("Say why the run is kept."))
        return keeping.keep(self, True, reason, by)

    def release_keep(self, reason: str, by: str) -> Remark:
        """The family may be erased and archived again. Raises Invalid, and Conflict when it is not kept."""
        from runs.engine import keeping

        _refuse_unfit(reason, _("Say why the run is no longer kept."))
        return keeping.keep(self, False, reason, by)

    def erase(self, reason: str, by: str) -> Tombstone:
        """Remove what the run's family was given, made, asked and told; ids, times, digests and a tombstone remain.

        The whole family, from its top. Once begun it is gone through with: by this call as far as it gets in a few
        seconds, else by workers; `Tombstone.erased_at` tells when nothing was left. Erased again, it returns the
        tombstone that is there. Raises Invalid for a reason that is missing or may not be stored, Conflict where a run
        of the family is kept, has not ended, or holds an effect in doubt.
        """
        from runs.engine import erasing

        _refuse_unfit(reason, _("Say why the run is erased."))
        return erasing.erase(self, reason, by)


def _refuse_unfit(reason: str, wanted: str | Promise) -> None:
    """Raises Invalid for a reason that may not be stored, and with what is `wanted` where it is blank."""
    if not reason.strip():
        raise Invalid(wanted, {"reason": [wanted]})
    if len(reason) > LONGEST_REASON:
        said = told(
            _("Too long: %(count)s characters, %(most)s are the most."),
            count=len(reason),
            most=LONGEST_REASON,
        )
        raise Invalid(f"reason: {said}", {"reason": [said]})
    secrets.refuse(reason, "reason")


def _uuid(name: str, digits: str) -> uuid.UUID:
    try:
        return uuid.UUID(digits)
    except ValueError:
        raise Missing(f"There is no run {name!r}.") from None
