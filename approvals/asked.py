"""Who is asked, stage by stage, and what this person may do about that: the part of a page that is about people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any  # rows of the trail

from django.utils.translation import gettext as _

from approvals import signing, who, words
from approvals.history import Seat, seats
from approvals.proof import other_proofs
from approvals.stages import stages_of
from approvals.tally import needs_of

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.models import Approval, Decision

SHOWN = 12
DONE, NOW, LATER, PASSED_OVER = "done", "now", "later", "passed over"


@dataclass(frozen=True, slots=True)
class StageSeats:
    """One stage with who said what in it; `asked` are the names whose turn it is, or will be."""

    name: str
    quorum: int
    votes: int
    state: str
    asked: list[str]
    seats: list[Seat]
    more: int = 0


class Asked:
    """A part of ApprovalPage, which has approval, user, now and rows."""

    approval: Approval
    user: User
    now: datetime
    rows: list[Any]

    @cached_property
    def standing(self) -> who.Standing:
        return who.standing(self.approval, self.user, called=who.known_names(self.user))

    @property
    def why_not(self) -> str:
        return self.standing.refused

    @property
    def is_late(self) -> bool:
        return self.approval.is_open and self.approval.due_at is not None and self.approval.due_at <= self.now

    @property
    def may_decide(self) -> bool:
        return self.approval.is_open and not self.why_not and not self.is_late and not self.my_vote

    @property
    def may_claim(self) -> bool:
        """Claim what nobody has, release what is one's own."""
        return self.may_decide and self.approval.assignee_id in (None, self.user.pk)

    @cached_property
    def my_vote(self) -> Decision | None:
        """This person's vote, while others are still missing."""
        if not self.approval.is_open:
            return None
        return next((vote.decision for vote in self.approval.votes.all() if vote.by_id == self.user.pk), None)

    @cached_property
    def votes(self) -> int:
        """Of the stage that decides now, or decided last."""
        return sum(vote.stage == self.approval.stage for vote in self.approval.votes.all())

    @cached_property
    def able(self) -> list[User]:
        return list(who.able(self.approval)) if self.approval.is_open else []

    @cached_property
    def stages(self) -> list[StageSeats]:
        """Each stage with its votes, and who is still asked in the one that decides now."""
        all_stages, taken = stages_of(self.approval), seats(self.approval, self.rows, self.able, self.user)
        needs = needs_of(self.approval.amendment, all_stages)
        told = []
        for stage in all_stages:
            theirs = [seat for seat in taken if seat.stage == stage.number]
            votes = sum(vote.stage == stage.number for vote in self.approval.votes.all())
            if stage.number not in needs:
                state = PASSED_OVER
            elif self.approval.is_open and stage.number == self.approval.stage:
                state = NOW
            else:
                state = DONE if votes >= stage.quorum else LATER
            names = [row.shown for row in self.approval.reviewers.all() if self._asks_in(row, stage.number)]
            told.append(
                StageSeats(
                    stage.name,
                    stage.quorum,
                    votes,
                    state,
                    list(dict.fromkeys(names)),
                    theirs[:SHOWN],
                    max(0, len(theirs) - SHOWN),
                )
            )
        return told

    @staticmethod
    def _asks_in(row: Any, stage: int) -> bool:
        return row.stage == stage and not row.excluded and row.instead_of_id is None

    @property
    def barred(self) -> list[tuple[Any, str]]:
        """Who may not decide although they might think so: (person, why)."""
        run = self.approval.run
        told = [
            (run.created_by, _("started the run")),
            (run.on_behalf_of, _("the run works on their behalf")),
        ]
        told += [
            (row.instead_of, _("gave their part in this to %(who)s") % {"who": row.name})
            for row in self.approval.reviewers.all()
            if row.instead_of_id is not None and row.stage == self.approval.stage
        ]
        seen: set[int] = set()
        kept = []
        for person, reason in told:
            if person is not None and person.pk != self.user.pk and person.pk not in seen:
                seen.add(person.pk)
                kept.append((person, reason))
        return kept

    # -- what this person may do about it ---------------------------------------------------------------------

    @property
    def may_delegate(self) -> bool:
        return self.may_decide and self.standing.instead_of is None

    @property
    def given_to(self) -> str:
        """User name of who has this person's part; "" for nobody, or once it is used."""
        if not self.approval.is_open:
            return ""
        used = any(vote.decision.instead_of_id == self.user.pk for vote in self.approval.votes.all())
        rows = [] if used else self.approval.reviewers.all()
        mine = (row for row in rows if row.instead_of_id == self.user.pk and row.stage == self.approval.stage)
        return next((row.name for row in mine), "")

    @property
    def assignable(self) -> list[User]:
        """To whom this may be handed: all who may decide and have not, but who has it."""
        voted = {vote.by_id for vote in self.approval.votes.all()}
        return [one for one in self.able if one.pk not in voted and one.pk != self.approval.assignee_id]

    @cached_property
    def may_extend(self) -> bool:
        if not self.approval.is_open or self.approval.due_at is None or self.is_late:
            return False
        return not self.why_not or not who.why_not_tend(self.approval, self.user)

    @property
    def extensions(self) -> list[tuple[int, str, datetime]]:
        """How far the deadline may be moved on this page: (minutes, words, the new moment)."""
        offered = (
            (60, _("1 hour")),
            (240, _("4 hours")),
            (1_440, _("1 day")),
            (4_320, _("3 days")),
            (10_080, _("1 week")),
        )
        due = self.approval.due_at
        return [(minutes, said, due + timedelta(minutes=minutes)) for minutes, said in offered] if due else []

    # -- signatures -------------------------------------------------------------------------------------------

    @property
    def is_signed(self) -> bool:
        """The author wants each decision signed: with the password again, or another proof of who it is."""
        return bool(self.approval.request.get("sign"))

    @property
    def other_proofs(self) -> list[dict[str, str]]:
        """How else than by password this person can show who they are: {"description", "url"}."""
        return other_proofs(self.user, self.approval.get_absolute_url())

    @property
    def meanings(self) -> dict[str, str]:
        return {
            verdict: _(signing.meaning(verdict)) for verdict in (words.APPROVE, words.REJECT, words.RESPOND)
        }

    @property
    def signature(self) -> str:
        """What is printed under the conclusion."""
        concluded = self.approval.conclusion
        return signing.printed(concluded) if concluded is not None else ""
