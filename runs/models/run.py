"""One execution of a graph: a narrow row that is also its own place in the queue."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.engine.ids import uuid7
from runs.models.reading import Reading
from runs.models.repairs import Repairs, refuse_unfit
from runs.models.rules import Rule, not_blank
from runs.models.run_rows import RunQuerySet
from runs.models.statuses import CANCELLED, ENDED, FAILED, STATUSES

if TYPE_CHECKING:
    from datetime import datetime

    from runs.models.archival import Archival
    from runs.models.checkpoint import Checkpoint
    from runs.models.remark import Remark
    from runs.models.signal import Signal
    from runs.models.tombstone import Tombstone

LONGEST_LANE = 100
PRIORITIES = ((0, "urgent"), (1, "high"), (2, "normal"), (3, "low"))


class Run(Repairs, Reading, models.Model):
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
    root = models.UUIDField(help_text=_("Correlation id: the run at the top of the family."))
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
    told_kind = models.CharField(
        max_length=12,
        blank=True,
        default="",
        db_default="",
        help_text="The error kind that its parent was told, once it was repaired afterwards.",
    )
    origin = models.UUIDField(null=True, blank=True, help_text="The run that it is a fork of.")
    origin_seq = models.IntegerField(
        null=True, blank=True, help_text="The checkpoint of that run with which it began."
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
    archived_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when its rows are in the archive, or on their way there."
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
            Rule(condition=Q(key=None) | not_blank("key"), name="run_key_not_blank"),
            Rule(condition=not_blank("graph"), name="run_graph_not_blank"),
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
            models.Index(fields=["origin"], condition=Q(origin__isnull=False), name="run_forks"),
            # those that are kept, in the admin site
            models.Index(fields=["id"], condition=Q(kept=True), name="run_kept"),
            models.Index(fields=["status", "-id"], name="run_by_status"),  # the list by status, and Repair
            # the chore: what ended runs leave behind
            models.Index(fields=["cascade_at"], condition=Q(cascade_at__isnull=False), name="run_to_cascade"),
            # the chore: families that ended long ago, in order of their end
            models.Index(
                fields=["finished_at", "id"],
                condition=Q(finished_at__isnull=False, parent=None, archived_at=None),
                name="run_to_archive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.graph} {self.short_id}"

    @property
    def short_id(self) -> str:
        return short_id(self.id)

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

        refuse_unfit(by, reason, _("Say why the run is migrated."))
        checkpoint = migrating.migrate(self.pk, by, reason)
        self.refresh_from_db()
        return checkpoint

    def cancel(self, by: str, reason: str, compensate: bool = False) -> Checkpoint:
        """End the run now, whoever drives it: the fence is raised, open questions close, an open write is in doubt.

        A failed one as well, which then waits for no repair any more.
        Its children are cancelled as well, unless they are detached: many of them soon after, by workers. With
        `compensate` workers first undo what it did, as its tools declare, and then it is cancelled. Cancelled
        without it while that goes on, it ends at once, and the rest stays done. Raises Invalid for a reason that is
        missing or may not be stored, Conflict when the run has ended otherwise or is undoing what it did already.
        """
        from runs.engine import cancelling

        refuse_unfit(by, reason, _("Say why the run is cancelled."))
        checkpoint = cancelling.cancel(self.pk, by, reason, compensate)
        self.refresh_from_db()
        return checkpoint

    def keep(self, reason: str, by: str) -> Remark:
        """Hold the run and its whole family back from erasure and archive; live or ended, whoever drives it.

        Raises Invalid for a reason that is missing or may not be stored, Conflict when it is kept, or erased, already.
        """
        from runs.engine import keeping

        refuse_unfit(by, reason, _("Say why the run is kept."))
        return keeping.keep(self, True, reason, by)

    def release_keep(self, reason: str, by: str) -> Remark:
        """The family may be erased and archived again. Raises Invalid, and Conflict when it is not kept."""
        from runs.engine import keeping

        refuse_unfit(by, reason, _("Say why the run is no longer kept."))
        return keeping.keep(self, False, reason, by)

    def erase(self, reason: str, by: str) -> Tombstone:
        """Remove what the run's family was given, made, asked and told; ids, times, digests and a tombstone remain.

        The whole family, from its top. Once begun it is gone through with: by this call as far as it gets in a few
        seconds, else by workers; `Tombstone.erased_at` tells when nothing was left. Erased again, it returns the
        tombstone that is there. Raises Invalid for a reason that is missing or may not be stored, Conflict where a run
        of the family is kept, has not ended, or holds an effect in doubt.
        """
        from runs.engine import erasing

        refuse_unfit(by, reason, _("Say why the run is erased."))
        return erasing.erase(self, reason, by)

    def archive(self, reason: str, by: str, ended_by: datetime | None = None) -> Archival:
        """Move the rows of the run's family out of the tables in which live runs are; they are read as before.

        The whole family, from its top, and for good. Once begun it is gone through with, as an erasure is:
        `Archival.archived_at` tells when nothing was left to move. Archived again, it returns the row that is there.
        Raises Invalid for a reason that is missing or may not be stored, Conflict where the family is kept or erased,
        or a run of it has not ended, or later than `ended_by`, holds an effect in doubt, or has failed and is neither
        repaired nor closed.
        """
        from runs.engine import archiving

        refuse_unfit(by, reason, _("Say why the run is archived."))
        archival = archiving.archive(self, reason, by, ended_by)
        self.refresh_from_db(fields=["archived_at"])
        return archival


def short_id(run_id: uuid.UUID | str) -> str:
    """The last six hex digits: uuid7's first ones are a clock and look alike."""
    return str(run_id)[-6:]
