"""The ledger: a question that a node asked, and its one answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any  # requests and results are any JSON

from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.utils.translation import gettext_lazy as _

from runs import hooks
from runs.conf import conf
from runs.core import codec
from runs.engine import blobs
from runs.engine.announce import announce
from runs.errors import Conflict, told
from runs.models.rules import Rule, not_blank
from runs.models.run import Run
from runs.models.signal import Signal

EFFECT, INTERRUPT, VALUE = "effect", "interrupt", "value"
SIGNAL, TIMER, CHILD = "signal", "timer", "child"
ENTRY_KINDS = (EFFECT, INTERRUPT, VALUE, SIGNAL, TIMER, CHILD)

OPEN, DONE, IN_DOUBT = "open", "done", "in_doubt"
COMPENSATED = "compensated"
ENTRY_STATUSES = (OPEN, DONE, "failed", IN_DOUBT, COMPENSATED, "cancelled")
_NOT_OPEN = _("%(what)s: it is not open any more.")


class LedgerEntryQuerySet(models.QuerySet["LedgerEntry"]):
    def in_doubt(self) -> LedgerEntryQuerySet:
        return self.filter(status=IN_DOUBT)

    def compensable(self) -> LedgerEntryQuerySet:
        """Writes that are done, or may be, and have a compensation."""
        sent = Q(status=IN_DOUBT) | Q(status=OPEN, tried_at__isnull=False)
        return self.filter(sent | Q(status=DONE), write=True).exclude(compensation="")

    def to_compensate(self) -> LedgerEntryQuerySet:
        """The writes that are still to be undone, the latest first; without those that a person has given up on."""
        given_up = self.model.objects.filter(compensates=OuterRef("pk"), status="failed")
        return self.compensable().filter(~Exists(given_up), status=DONE).order_by("-id")

    def interrupts(self) -> LedgerEntryQuerySet:
        return self.filter(kind=INTERRUPT)


class LedgerEntry(models.Model):
    run = models.ForeignKey(
        "runs.Run",
        on_delete=models.PROTECT,
        related_name="hot_entries",
        related_query_name="entries",
        db_index=False,
    )
    step = models.IntegerField(help_text="The step in progress when it was asked: Run.step + 1.")
    key = models.CharField(max_length=200, help_text="As written, {run_id} unresolved.")
    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=200)
    request = models.TextField()
    request_digest = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=300, null=True, blank=True, unique=True)
    write = models.BooleanField(default=False, help_text="An effect that changes the world outside.")
    status = models.CharField(max_length=12, default=OPEN)
    result = models.TextField(null=True, blank=True)
    error_kind = models.CharField(max_length=12, blank=True, default="")
    error = models.TextField(blank=True, default="")
    attempts = models.IntegerField(default=0)
    tried_at = models.DateTimeField(null=True, blank=True, help_text="A call may be under way since then.")
    due_at = models.DateTimeField(
        null=True, blank=True, help_text="Deadline of a wait; of a tried write: from when it may be resolved."
    )
    opened_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = models.CharField(max_length=200, blank=True, default="")
    effective_at = models.DateTimeField(null=True, blank=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    awaited = models.BooleanField(default=False, help_text="The parked run waits for this one.")
    approved_digest = models.CharField(max_length=64, blank=True, default="")
    approval_head = models.CharField(max_length=64, blank=True, default="")
    decided_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="carried_out_by"
    )
    settles = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="settlements",
        help_text="On a question <key>!: the entry in doubt that its answer settles.",
    )
    compensation = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="Name of what undoes it, as declared when it was called.",
    )
    compensates = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="compensated_by",
        db_index=False,
        help_text="The write that this one undoes.",
    )
    child = models.ForeignKey(
        "runs.Run",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="awaited_by",
        db_index=False,
        help_text="The run whose end answers it; a fan-out has many and names none.",
    )

    aside = models.BooleanField(
        default=False, db_default=False, help_text="By a repair: asked again, it is a new entry."
    )
    copied_from = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="In a fork: the id of the entry that it repeats, of the run it is from.",
    )

    objects = LedgerEntryQuerySet.as_manager()

    class Meta:
        constraints = [
            # also the index of every read: the entries of one step
            models.UniqueConstraint(fields=["run", "step", "key"], name="entry_key_once_a_step"),
            Rule(condition=Q(status__in=ENTRY_STATUSES), name="entry_status_known"),
            Rule(condition=Q(kind__in=ENTRY_KINDS), name="entry_kind_known"),
            Rule(condition=not_blank("key"), name="entry_key_not_blank"),
            Rule(
                condition=Q(idempotency_key=None) | not_blank("idempotency_key"),
                name="entry_idempotency_key_not_blank",
            ),
            Rule(
                condition=Q(status=OPEN, answered_at=None) | ~Q(status=OPEN), name="entry_open_is_unanswered"
            ),
            Rule(condition=~Q(status=DONE) | Q(result__isnull=False), name="entry_done_has_result"),
            Rule(condition=Q(step__gte=0, attempts__gte=0), name="entry_counts_not_negative"),
            # also the index of whether a write was undone
            models.UniqueConstraint(
                fields=["compensates"], condition=Q(compensates__isnull=False), name="entry_compensated_once"
            ),
        ]
        indexes = [
            # the bell: interrupts whose deadline passed; Repair: what is in doubt
            models.Index(
                fields=["status", "due_at"], condition=Q(status__in=[OPEN, IN_DOUBT]), name="entry_open"
            ),
            # a child's end: who waits for it
            models.Index(fields=["child"], condition=Q(child__isnull=False), name="entry_of_child"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} step {self.step} {self.key}"

    @property
    def is_unclear(self) -> bool:
        """A write that may have been sent: nobody knows yet, or it is under way."""
        sent = self.status == IN_DOUBT or self.status == OPEN and self.tried_at is not None
        return self.kind == EFFECT and self.write and sent

    def request_value(self) -> Any:
        """The request, decoded; a long one is fetched from its blob."""
        return codec.loads(blobs.load_text(self.run_id, self.request, self.key))

    def result_value(self) -> Any:
        text = blobs.load_text(self.run_id, self.result, self.key)
        return None if text is None else codec.loads(text)

    # Verbs. Each is called inside a transaction that has locked the Run (Run.objects.lock); `now` is that clock.

    def answer(
        self,
        run: Run,
        result: dict[str, Any],
        by: str,
        now: datetime,
        effective_at: datetime,
        approved_digest: str = "",
        approval_head: str = "",
    ) -> None:
        """Give an open interrupt its one answer and wake the run. Raises Conflict if it is not open."""
        if self.settles_id is not None:
            from runs.engine import settling

            settling.settle_by_answer(self, run, result, by, now)
            effective_at = now
        text = codec.dumps(result)
        stored = blobs.offload_text(run.pk, text, self.key, conf.blob_bytes, conf.value_limit_bytes)
        changed = LedgerEntry.objects.filter(pk=self.pk, status=OPEN).update(
            status=DONE,
            result=stored,
            answered_at=now,
            answered_by=by[:200],
            effective_at=effective_at,
            approved_digest=approved_digest,
            approval_head=approval_head,
        )
        if changed != 1:
            raise Conflict(told(_NOT_OPEN, what=self.name))
        self.refresh_from_db()
        wake(run, effective_at)

    def expire(self, run: Run, now: datetime) -> str:
        """Close an overdue interrupt as its author declared; returns the outcome. Fails closed."""
        request = self.request_value()
        outcome = {"auto_approve": "auto_approved"}.get(request["on_expiry"], request["on_expiry"])
        verdict = {"rejected": "reject", "auto_approved": "approve"}.get(outcome, "")
        result = {
            "outcome": outcome,
            "verdict": verdict,
            "payload": request["payload"],
            "reason": "The deadline passed.",
            "by": "the deadline",
        }
        text = codec.dumps(result)
        approved = codec.digest(codec.dumps(request["payload"])) if verdict == "approve" else ""
        changed = LedgerEntry.objects.filter(pk=self.pk, status=OPEN).update(
            status=DONE,
            result=blobs.offload_text(run.pk, text, self.key, conf.blob_bytes, conf.value_limit_bytes),
            answered_at=now,
            answered_by="the deadline",
            effective_at=now,
            approved_digest=approved,
        )
        if changed != 1:
            raise Conflict(told(_NOT_OPEN, what=self.name))
        self.refresh_from_db()
        hooks.interrupt_closed.send(sender=LedgerEntry, run=run, entry=self, outcome=outcome, now=now)
        return outcome

    def look(self, now: datetime) -> None:
        """Answer an open wait if it is over: by the oldest unread signal of its name, which it consumes, or the clock.

        A signal that came at or after the deadline is too late, also where no worker has looked until now: it stays
        unread, and the wait has timed out.
        """
        came = Signal.objects.for_wait(self.run_id, self.name, self.due_at) if self.kind == SIGNAL else None
        if came is not None:
            self._close(now, came.by, status=DONE, result=came.payload)
            if Signal.objects.unread().filter(pk=came.pk).update(consumed_by=self) != 1:
                raise Conflict(told(_("%(what)s: its signal was read in the meantime."), what=self.key))
        elif self.due_at is not None and self.due_at <= now and self.kind == TIMER:
            self._close(now, "the clock", status=DONE, result="null")
        elif self.due_at is not None and self.due_at <= now:
            missed = f"No signal {self.name!r} came before {self.due_at:%Y-%m-%d %H:%M:%S} UTC."
            self._close(now, "the deadline", status="failed", error_kind="expired", error=missed)

    def _close(self, now: datetime, by: str, **changes: Any) -> None:
        changes |= {"answered_at": now, "answered_by": by, "effective_at": now}
        if LedgerEntry.objects.filter(pk=self.pk, status=OPEN).update(**changes) != 1:
            raise Conflict(told(_NOT_OPEN, what=self.key))
        self.refresh_from_db()

    def reopen(self, run: Run, now: datetime) -> str:
        """Undo an answer that nothing has taken; "open", or "expired" when its deadline has passed meanwhile."""
        if self.settles_id is not None:
            raise Conflict(_("A settlement cannot be undone: the call it speaks of is settled."))
        if run.ended or run.ending:
            raise Conflict(told(_("Too late to undo: run %(run)s has ended."), run=run.short_id))
        if run.step + 1 != self.step:
            raise Conflict(told(_("Too late to undo: run %(run)s has left that step."), run=run.short_id))
        changed = LedgerEntry.objects.filter(pk=self.pk, status=DONE, taken_at=None).update(
            status=OPEN,
            result=None,
            answered_at=None,
            answered_by="",
            effective_at=None,
            approved_digest="",
            approval_head="",
        )
        if changed != 1:
            raise Conflict(
                told(
                    _("Too late to undo: run %(run)s has taken the answer and begun “%(node)s”."),
                    run=run.short_id,
                    node=run.node,
                )
            )
        self.refresh_from_db()
        if self.due_at is not None and self.due_at <= now:
            outcome = self.expire(run, now)
            wake(run, now)
            return outcome
        wake(run, self.due_at)
        return OPEN

    def postpone(self, run: Run, due_at: datetime, now: datetime) -> None:
        """Move the deadline of an open question. Counts as an answer: the run looks again, and parks until then.

        Raises Conflict if it is answered, or the old deadline has passed.
        """
        still_open = LedgerEntry.objects.filter(pk=self.pk, status=OPEN, due_at__gt=now)
        if still_open.update(due_at=due_at) != 1:
            raise Conflict(
                told(_("%(what)s: it is not open any more, or its deadline has passed."), what=self.name)
            )
        self.refresh_from_db()
        wake(run, due_at)

    def settle(self, run: Run, by: str, outcome: str, result: Any, reason: str, now: datetime) -> None:
        """Say what became of an effect in doubt: happened, not_happened or give_up (DESIGN section 6).

        Where the run has ended, a checkpoint says so: no later one would. Raises Conflict unless it is in doubt,
        TooEarly while an earlier call may still be under way.
        """
        from runs.engine import settling

        settling.settle(self, run, by, outcome, result, reason, now)


def wake(run: Run, at: datetime | None, answers: int = 1) -> None:
    """Answers were accepted: counted, and a run that waits looks at the latest at `at`. Others keep their time."""
    changes: dict[str, Any] = {"answers": F("answers") + answers}
    if run.status == "waiting" and at is not None:
        changes["wake_at"] = Case(When(wake_at__lt=at, then=F("wake_at")), default=Value(at))
    Run.objects.filter(pk=run.pk).update(**changes)
    run.refresh_from_db(fields=["answers", "wake_at"])
    announce()
