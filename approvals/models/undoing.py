"""How a decision is taken back: a vote while others are missing, a conclusion before the run has taken it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from approvals.models.activity import Activity
from approvals.refusals import must_be_open, must_see
from approvals.stages import stages_of
from approvals.tally import tally
from approvals.words import TAKEN_BACK, UNDONE
from runs.errors import Conflict, NotAllowed, lowered, told
from runs.models import LedgerEntry, Run
from runs.naming import someone
from runs.pages.words import status_word

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.models.approval import Approval
    from approvals.models.decision import Decision


class Undoing:
    """The verbs `undo` and `take_back` of Approval."""

    def undo(self: Approval, by: User) -> None:
        """Reopen what `by` concluded, while the run has not taken the answer; past its deadline it then expires.

        Raises Conflict when it is too late, saying what has begun; NotAllowed for anyone else.
        """
        must_see(self, by)
        self.durably(lambda: self._undo(by))
        self.refresh_from_db()

    def take_back(self: Approval, by: User) -> None:
        """Take back one's vote while the quorum is not met. Raises Conflict if there is none, or it is too late."""
        must_see(self, by)
        self.durably(lambda: self._take_back(by))

    @transaction.atomic
    def _undo(self: Approval, by: User) -> None:
        now = self._hold_with_run()
        if self.is_open:
            raise Conflict(_("There is nothing to undo: this is open."))
        if self.conclusion is None:
            raise Conflict(
                told(
                    _("No person decided this (%(word)s), so nobody can undo it."),
                    word=lowered(status_word(self.outcome).word),
                )
            )
        if self.conclusion.by_id != by.pk:
            raise NotAllowed(
                told(_("Only %(who)s, who decided, can undo this."), who=someone(self.conclusion.by))
            )
        self._withdraw(self.conclusion, UNDONE, by, now, moves=True)
        self.entry.reopen(self.run, now=now)

    @transaction.atomic
    def _take_back(self: Approval, by: User) -> None:
        now = self._hold_with_run()
        must_be_open(self)
        vote = self.votes.filter(by=by).select_related("decision").first()
        if vote is None:
            raise Conflict(_("You have no vote here to take back."))
        self._withdraw(vote.decision, TAKEN_BACK, by, now, moves=False)

    def _hold_with_run(self: Approval) -> datetime:
        run, now = Run.objects.lock(self.run_id)
        entry = LedgerEntry.objects.get(pk=self.entry_id)
        self.lock()
        self.run, self.entry = run, entry
        return now

    def _withdraw(
        self: Approval, decision: Decision, kind: str, by: User, now: datetime, *, moves: bool
    ) -> None:
        """Put it in the trail and count again; the revision moves with what is decided, and with who decides."""
        standing = self.decisions.filter(withdrawals=None).exclude(pk=decision.pk).order_by("seq")
        counted = tally(standing, self.proposal_digest, stages_of(self))
        changes = self.at_stage(counted)
        moves = moves or bool(changes) or decision.pk == self.amendment_id
        self.append(
            Activity(kind=kind, by=by, decision=decision, at=now),
            amendment=counted.amendment,
            outcome="",
            decided_at=None,
            conclusion=None,
            revision=self.revision + 1 if moves else self.revision,
            **changes,
        )
        self.write_votes(counted)
