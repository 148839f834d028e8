"""An interrupt as people see it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar  # a request and a payload are any JSON

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from approvals.chain import link
from approvals.contracts import contract_of
from approvals.models.deciding import Deciding
from approvals.models.delegating import Delegating
from approvals.models.draft import KeptDraft
from approvals.models.inbox import ApprovalQuerySet
from approvals.models.tending import Tending
from approvals.models.timing import Timing
from approvals.models.undoing import Undoing
from approvals.notices import outbox
from approvals.payload import as_json
from approvals.who import AMPLE_QUORUM
from approvals.words import EXPIRIES, OUTCOMES, RESPOND, RISKS
from runs.core import codec
from runs.engine.durably import durably
from runs.engine.ids import uuid7
from runs.errors import Conflict, told

if TYPE_CHECKING:
    from datetime import datetime

    from approvals.contracts.contract import Contract
    from approvals.models.activity import Activity
    from approvals.models.decision import Decision


T = TypeVar("T")


class Approval(Deciding, Undoing, Tending, Delegating, Timing, models.Model):
    """One a question. The question itself, with payload and schema, stays in the ledger: `request`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="approvals")
    entry = models.OneToOneField("runs.LedgerEntry", on_delete=models.PROTECT, related_name="approval")
    graph = models.CharField(max_length=100)
    title = models.TextField(help_text="The question.")
    body = models.TextField(blank=True, default="", help_text="Why: the author's markdown.")
    verdicts = models.JSONField(default=list, help_text="What may be said: approve, edit, reject, respond.")
    stage = models.PositiveSmallIntegerField(default=1, help_text="The one that decides now, from 1.")
    stages = models.JSONField(
        default=list,
        blank=True,
        help_text="Of each: name, quorum, and whether the proposal needs it; empty: there is one.",
    )
    quorum = models.PositiveSmallIntegerField(
        default=1, help_text="How many have to say yes to one payload, in the stage that decides now."
    )
    risk = models.CharField(max_length=6, default="low")
    due_at = models.DateTimeField(null=True, blank=True, help_text="A copy; the entry's is the truth.")
    remind_at = models.DateTimeField(null=True, blank=True, help_text="When a reminder is due next.")
    escalate_at = models.DateTimeField(
        null=True, blank=True, help_text="From when others are asked as well, if it is still open."
    )
    has_broken_form = models.BooleanField(
        default=False, help_text="Its schema is none, so that it can only be answered as JSON."
    )
    is_unnamed = models.BooleanField(
        default=False, db_default=False, help_text="Nobody was named to decide it when it was asked."
    )
    on_expiry = models.CharField(max_length=12, default="expired")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="assigned"
    )
    amendment = models.ForeignKey(
        "approvals.Decision",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The decision whose payload is on the table; none: the proposal's own.",
    )
    conclusion = models.ForeignKey(
        "approvals.Decision",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The decision that gave the outcome; none while open, or if no person did.",
    )
    proposal_digest = models.CharField(max_length=64, help_text="Of the payload as proposed.")
    revision = models.PositiveIntegerField(
        default=1, help_text="Moves with what is decided or who may decide, not with comments and votes."
    )
    outcome = models.CharField(max_length=20, blank=True, default="", help_text="Empty while open.")
    opened_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    length = models.PositiveIntegerField(default=0, help_text="Rows in the chain.")
    head = models.CharField(
        max_length=64, blank=True, default="", help_text="Digest of the chain's last row."
    )

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="") | Q(outcome__in=OUTCOMES), name="approval_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome="", decided_at=None) | (~Q(outcome="") & Q(decided_at__isnull=False)),
                name="approval_open_is_undecided",
            ),
            models.CheckConstraint(condition=Q(risk__in=RISKS), name="approval_risk_known"),
            models.CheckConstraint(condition=Q(on_expiry__in=EXPIRIES), name="approval_expiry_known"),
            models.CheckConstraint(condition=Q(quorum__gte=1), name="approval_quorum_not_none"),
        ]
        indexes = [
            # the inbox: open ones by deadline, then age; of one graph, too
            models.Index(fields=["due_at", "opened_at", "id"], condition=Q(outcome=""), name="approval_open"),
            models.Index(
                fields=["graph", "due_at", "opened_at", "id"],
                condition=Q(outcome=""),
                name="approval_open_of_graph",
            ),
            models.Index(
                fields=["risk", "due_at", "opened_at", "id"],
                condition=Q(outcome=""),
                name="approval_open_of_risk",
            ),
            # what is new since a page was made
            models.Index(fields=["opened_at"], condition=Q(outcome=""), name="approval_open_since"),
            # needs attention, but for what only the names of its reviewers tell
            models.Index(
                fields=["due_at", "opened_at", "id"],
                condition=Q(outcome="")
                & (
                    Q(has_broken_form=True) | Q(is_unnamed=True) | Q(stage__gt=1) | Q(quorum__gt=AMPLE_QUORUM)
                ),
                name="approval_doubtful",
            ),
            # the chores
            models.Index(
                fields=["remind_at"],
                condition=Q(outcome="", remind_at__isnull=False),
                name="approval_remind",
            ),
            models.Index(
                fields=["escalate_at"],
                condition=Q(outcome="", escalate_at__isnull=False),
                name="approval_escalate",
            ),
            # What one person has decided or seen decided: from what names them to the run, and to all of that run
            models.Index(fields=["id", "run"], name="approval_to_run"),
            models.Index(fields=["run", "outcome", "decided_at", "id", "opened_at"], name="approval_of_run"),
            # Decided: the latest first
            models.Index(fields=["-decided_at", "-id"], condition=~Q(outcome=""), name="approval_decided"),
            models.Index(
                fields=["graph", "-decided_at", "-id"],
                condition=~Q(outcome=""),
                name="approval_decided_of_graph",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.short_id})"

    def get_absolute_url(self) -> str:
        return reverse("approvals:approval", args=[self.pk])

    @property
    def short_id(self) -> str:
        """The last six hex digits: uuid7's first ones are a clock and look alike."""
        return self.pk.hex[-6:]

    @property
    def is_open(self) -> bool:
        return self.outcome == ""

    @cached_property
    def request(self) -> dict[str, Any]:
        """All that was asked (docs: the request of an interrupt), decoded from the ledger."""
        return self.entry.request_value()

    @cached_property
    def contract(self) -> Contract | None:
        """The contract of an outside framework that this is answered in, if any: then the payload of a decision is its
        answer."""
        return contract_of(self.request) if self.verdicts == [RESPOND] else None

    @property
    def payload(self) -> Any:
        """What is on the table, as JSON: the proposal, or the latest edit that stands."""
        return as_json(self.amendment.value if self.amendment is not None else self.request["payload"])

    @property
    def proposal(self) -> Any:
        """The payload as it was proposed, as JSON."""
        return as_json(self.request["payload"])

    @property
    def payload_text(self) -> str:
        """The canonical text of what is on the table: what people approve, and what runs."""
        return self.amendment.payload if self.amendment is not None else codec.dumps(self.request["payload"])

    @property
    def payload_digest(self) -> str:
        return self.amendment.payload_digest if self.amendment is not None else self.proposal_digest

    @property
    def reviewer_names(self) -> list[str]:
        """Who decides now, as people read it: user and group names of this stage, without who stands in for whom."""
        rows = [row for row in self.reviewers.all() if row.stage == self.stage and not row.excluded]
        return list(dict.fromkeys(row.shown for row in rows if row.instead_of_id is None))

    def lock(self) -> None:
        """Hold this row until the transaction ends, and read it anew. Whoever needs the Run locks that first."""
        self.refresh_from_db(from_queryset=Approval.objects.select_for_update())

    def append(self, row: Decision | Activity, **changes: Any) -> None:
        """Write the next link of the chain and what it changed about this row; the caller holds the lock.

        The only way a trail row comes to be, so that each change has exactly one, in the same transaction.
        """
        row.approval = self
        row.seq = self.length + 1
        row.revision = changes.get("revision", self.revision)
        row.digest = link(self.head, row)
        self.appended = row
        row.save(force_insert=True)
        self.change(head=row.digest, length=row.seq, **changes)
        if "outcome" in changes:
            KeptDraft.rest(self, self.decided_at)
        outbox.note(self, row, changes)

    def durably(self, act: Callable[[], T]) -> T | Any:
        """Do a verb once, though the database may lose the answer to its COMMIT: its row in the chain says so.

        Then the result is that row.
        """
        self.appended: Decision | Activity | None = None

        def again() -> T | Any:
            written = self.appended
            if (
                written is not None
                and type(written).objects.filter(digest=written.digest, approval=self).exists()
            ):
                return written
            self.refresh_from_db()
            return act()

        return durably(act, again)

    def change(self, **changes: Any) -> None:
        """A conditional UPDATE: only of the row as it was read."""
        unmoved = Approval.objects.filter(
            pk=self.pk, length=self.length, revision=self.revision, outcome=self.outcome
        )
        if not unmoved.update(**changes):
            raise Conflict(told(_("“%(title)s” was changed by somebody else; look again."), title=self.title))
        for name, value in changes.items():
            setattr(self, name, value)

    def close(self, row: Activity, outcome: str, now: datetime) -> None:
        """Take an outcome that no decision made; the caller holds the lock and sends the reason as `row`."""
        self.append(row, outcome=outcome, decided_at=now, revision=self.revision + 1)
