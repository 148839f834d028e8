"""The one way to decide, for page, API, command, admin and bulk alike."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any  # payloads are any JSON

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from approvals import who
from approvals.models.activity import Activity
from approvals.models.decision import Decision
from approvals.models.reviewer import Vote
from approvals.refusals import (
    TooLate,
    must_be_allowed,
    must_be_open,
    must_be_revision,
    must_not_be_erased,
    must_say_why,
    must_see,
)
from approvals.rules import must_not_object
from approvals.said import AS_PROPOSED, Said, listen
from approvals.signing import WRONG, Proof, WrongPassword, must_be_unused, must_have_tries
from approvals.stages import stages_of
from approvals.tally import Tally, tally
from approvals.text import clock_said, storable_text
from approvals.words import (
    APPROVE,
    APPROVED,
    APPROVED_WITH_EDITS,
    EDIT,
    LATE,
    REFUSED,
    REJECT,
    REJECTED,
    RESPOND,
    RESPONDED,
)
from runs.conf import conf
from runs.core import codec
from runs.engine import clock
from runs.engine.durably import durably
from runs.errors import Conflict, NotAllowed, Refusal, told
from runs.models import LedgerEntry, Run

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.models.approval import Approval

VERDICT_OF = {APPROVED: APPROVE, APPROVED_WITH_EDITS: EDIT, REJECTED: REJECT, RESPONDED: RESPOND}


class Deciding:
    """The verb `decide` of Approval."""

    def decide(
        self: Approval,
        *,
        by: User,
        verdict: str,
        payload: Any = AS_PROPOSED,
        reason: str = "",
        revision: int | None = None,
        operation_id: str | None = None,
        via: str = "page",
        seen: Any = None,
        signed_in: str = "",
        password: str | None = None,
        proof: Proof | None = None,
    ) -> Decision:
        """Say approve, edit, reject or respond; when enough have said yes, the run gets its answer.

        `payload`: JSON; left out, what is on the table. `revision`: the one that `by` looked at; None takes what is
        there. `operation_id`: the same sent again gives the same Decision. `seen`: the JSON from which the page was
        made. `password` of `by`, or `proof` that it is them: where the author wants a signature. Raises Missing,
        NotAllowed, Conflict (also when too late) or Invalid: nothing has changed then, and the attempt of one who may
        see this is in the trail if it came too late, second, from the wrong person, or with a wrong password.
        """
        must_see(self, by)
        must_not_be_erased(self)
        try:
            said = listen(
                self,
                by,
                verdict,
                payload,
                reason,
                revision,
                operation_id,
                via,
                seen,
                signed_in,
                password,
                proof,
            )
        except WrongPassword as wrong:
            self._remember_refusal(by, f"{WRONG}{verdict}", wrong)
            raise
        try:
            return durably(lambda: self._hear(said))
        except (Conflict, NotAllowed) as refusal:
            self._remember_refusal(said.by, said.verdict, refusal)
            raise
        except IntegrityError:
            earlier = said_before(said)  # the same operation id was committed for another approval meanwhile
            if earlier is None:
                raise
            return earlier

    @transaction.atomic
    def _hear(self: Approval, said: Said) -> Decision:
        run, now = Run.objects.lock(self.run_id)
        entry = LedgerEntry.objects.get(pk=self.entry_id)
        self.lock()
        self.run, self.entry = run, entry
        earlier = said_before(said)
        if earlier is not None:
            return earlier
        must_be_open(self)
        if entry.due_at is not None and now >= entry.due_at:
            raise TooLate(
                told(
                    _("Too late: the deadline was %(when)s; nothing was changed."),
                    when=clock_said(entry.due_at),
                )
            )
        must_be_revision(self, said.revision)
        standing = must_be_allowed(self, said.by)
        must_say_why(said)
        self._must_not_vote_twice(said)
        must_be_unused(said.by, said.signature, now)
        decision = self._decision(said, now)
        decision.instead_of = standing.instead_of
        if decision.verdict in (APPROVE, EDIT) and decision.payload_digest == self.proposal_digest:
            must_not_object(self.request.get("objection") or "")
        if decision.verdict == REJECT:
            self._conclude(decision, REJECTED, now)
        elif not self._count(decision, now):
            return decision
        self._answer(decision, said.reason, now)
        return decision

    def _must_not_vote_twice(self: Approval, said: Said) -> None:
        if said.verdict == REJECT or (
            said.text is not None and codec.digest(said.text) != self.payload_digest
        ):
            return  # a rejection, or another payload, which starts the count anew
        vote = self.votes.filter(by=said.by).select_related("decision").first()
        if vote is not None:
            raise Conflict(
                told(
                    _(
                        "You voted at %(when)s, and a person votes once; to change your vote, take it back first."
                    ),
                    when=clock_said(vote.decision.at),
                )
            )

    def _decision(self: Approval, said: Said, now: datetime) -> Decision:
        text = said.text if said.text is not None else self.payload_text
        digest, verdict = codec.digest(text), said.verdict
        if verdict == APPROVE and digest != self.payload_digest:
            verdict = EDIT
        elif verdict == EDIT and digest == self.payload_digest and APPROVE in self.verdicts:
            verdict = APPROVE
        return Decision(
            by=said.by,
            via=said.via,
            verdict=verdict,
            payload=text,
            payload_digest=digest,
            reason=storable_text(said.reason),
            operation_id=said.operation_id,
            operation_digest=said.operation_digest,
            at=now,
            signed_in=said.signed_in,
            stage=self._stage_of_vote(said),
            needs=list(said.needs) if said.needs else None,
            signature=said.signature,
            seen=said.seen,
            seen_digest=codec.digest(said.seen) if said.seen else "",
        )

    def _stage_of_vote(self: Approval, said: Said) -> int:
        """The stage that decides now; of an edit that does not need it, one that it does need and that names them."""
        if not said.needs or self.stage in said.needs:
            return self.stage
        theirs = who.stages_naming(self, said.by)
        return next((number for number in said.needs if number in theirs), self.stage)

    def _count(self: Approval, decision: Decision, now: datetime) -> bool:
        """Write a yes, with the votes as they then stand. True if it concludes the approval."""
        standing = self.decisions.filter(withdrawals=None).order_by("seq")
        counted = tally([*standing, decision], self.proposal_digest, stages_of(self))
        if counted.missing is None:
            self._conclude(decision, self._outcome(counted), now, amendment=counted.amendment)
        else:
            changes = self.at_stage(counted)
            if counted.amendment is decision:
                changes["amendment"] = decision
            if changes:
                changes["revision"] = self.revision + 1
            if self.assignee_id == decision.by_id:
                changes["assignee"] = None  # who has voted is not at it any more; others see it again
            self.append(decision, **changes)
        self.write_votes(counted)
        return not self.is_open

    def at_stage(self: Approval, counted: Tally) -> dict[str, Any]:
        """What changes when another stage decides from now on; nothing if it is the same one."""
        stage = counted.missing
        if stage is None or stage.number == self.stage:
            return {}
        return {"stage": stage.number, "quorum": stage.quorum, "assignee": None}

    def _outcome(self: Approval, counted: Tally) -> str:
        if counted.amendment is None:
            return APPROVED
        if counted.amendment.verdict == RESPOND:
            return RESPONDED
        return APPROVED if counted.amendment.payload_digest == self.proposal_digest else APPROVED_WITH_EDITS

    def _conclude(self: Approval, decision: Decision, outcome: str, now: datetime, **changes: Any) -> None:
        self.append(
            decision,
            outcome=outcome,
            decided_at=now,
            conclusion=decision,
            revision=self.revision + 1,
            **changes,
        )

    def _answer(self: Approval, decision: Decision, reason: str, now: datetime) -> None:
        """Give the run its answer; it may take it once nobody can undo it any more."""
        wait = timedelta(0) if self.request.get("sign") else timedelta(seconds=conf.undo_seconds)
        person = decision.by.get_username()
        self.entry.answer(
            self.run,
            result={
                "outcome": self.outcome,
                "verdict": VERDICT_OF[self.outcome],
                "payload": decision.value,
                "reason": reason,
                "by": person,
            },
            by=f"{person} for {decision.instead_of.get_username()}" if decision.instead_of else person,
            now=now,
            effective_at=now + wait,
            approved_digest=decision.payload_digest
            if self.outcome in (APPROVED, APPROVED_WITH_EDITS)
            else "",
            approval_head=self.head,
        )

    def write_votes(self: Approval, counted: Tally) -> None:
        """Make the votes that count now the rows of Vote; the caller holds the lock."""
        self.votes.all().delete()
        Vote.objects.bulk_create(
            Vote(approval=self, by_id=person, decision=vote, stage=vote.stage)
            for person, vote in counted.votes.items()
        )

    def _remember_refusal(self: Approval, by: User, verdict: str, refusal: Refusal) -> None:
        """Put the attempt in the trail, in a transaction of its own: the refused one was rolled back.

        Raises NotAllowed in place of a wrong password that came beside others, when five are told already.
        """
        kind = LATE if isinstance(refusal, TooLate) else REFUSED

        @transaction.atomic
        def write() -> None:
            self.lock()
            if isinstance(refusal, WrongPassword):
                must_have_tries(by, clock.now())
            must_not_be_erased(self)
            self.append(Activity(kind=kind, by=by, text=f"{verdict}: {refusal}", at=clock.now()))

        durably(write)


def said_before(said: Said) -> Decision | None:
    """The Decision of the same operation, if it was sent before. Raises Conflict if it said something else."""
    earlier = Decision.objects.filter(operation_id=said.operation_id).select_related("by").first()
    if earlier is None:
        return None
    if earlier.by_id == said.by.pk and earlier.operation_digest == said.operation_digest:
        return earlier
    raise Conflict(_("This operation id was used before, for something else; send a new one."))
