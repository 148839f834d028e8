"""Many approvals decided in one go: the list frozen as it was selected, what would happen to each, and what did.

Each one is decided by its own `Approval.decide`, with all its rules, in its own transaction: what changed since it was
selected is refused alone and named, the others are decided (A12).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from approvals.models import Approval
from approvals.pages import ApprovalPage
from approvals.refusals import must_be_allowed, must_be_open, must_be_revision
from approvals.rules import fault_of
from approvals.stages import stages_of
from approvals.tally import needs_of
from approvals.words import APPROVE, REJECT
from runs.conf import conf
from runs.engine import clock
from runs.errors import Invalid, Refusal

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

MOST = 100
TYPED_ABOVE = 10  # from so many on, one types their number
VERDICTS = (APPROVE, REJECT)


@dataclass(frozen=True, slots=True)
class Pick:
    """One approval as it was when somebody selected it."""

    key: uuid.UUID
    revision: int

    def __str__(self) -> str:
        return f"{self.key.hex}.{self.revision}"


def picks_of(texts: Iterable[str]) -> list[Pick]:
    """What was selected, each approval once. Raises Invalid for more than MOST, or what is no selection."""
    picks: dict[uuid.UUID, Pick] = {}
    for text in texts:
        key, _dot, revision = text.partition(".")
        try:
            pick = Pick(uuid.UUID(hex=key), int(revision[:9]))
        except ValueError:
            raise Invalid(_("This is no selection of the inbox; select there anew.")) from None
        picks.setdefault(pick.key, pick)
    if len(picks) > MOST:
        said = _("You have selected %(count)s; %(most)s are the most at once.")
        raise Invalid(said % {"count": len(picks), "most": MOST})
    return list(picks.values())


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would become of one item under one verdict; `is_vote`: others have to say yes, too."""

    is_refused: bool
    words: str
    is_vote: bool = False


class Item:
    """One approval of the list, for one person."""

    def __init__(
        self, pick: Pick, approval: Approval, user: User, now: datetime, *, may_decide: bool
    ) -> None:
        self.pick, self.approval, self.user, self.may_decide = pick, approval, user, may_decide
        self.page = ApprovalPage(approval, user, now=now)

    @cached_property
    def refused(self) -> str:
        """Why nothing can be done with it here, whatever the verdict."""
        try:
            must_be_open(self.approval)
            if self.page.is_late:
                return _("The deadline has passed.")
            must_be_revision(self.approval, self.pick.revision)
            if not self.may_decide:
                must_be_allowed(self.approval, self.user)
        except Refusal as refusal:
            return refusal.message
        return alone(self.approval)

    @cached_property
    def forecasts(self) -> dict[str, Forecast]:
        return {verdict: self.forecast(verdict) for verdict in VERDICTS}

    def forecast(self, verdict: str) -> Forecast:
        if self.refused:
            return Forecast(True, self.refused)
        if verdict not in self.approval.verdicts:
            said = _("It wants an answer") if verdict == APPROVE else _("It cannot be rejected")
            return Forecast(True, _("%(fault)s; open it.") % {"fault": said})
        if verdict == REJECT:
            return Forecast(False, _("Rejected"))
        if self.page.my_vote:
            return Forecast(True, _("You have voted; it waits for others."))
        if self.page.objection:
            return Forecast(True, str(fault_of(self.page.objection)))
        votes = self.page.votes + 1
        if votes < self.approval.quorum:
            said = _("Your vote counts, %(votes)s of %(quorum)s")
            return Forecast(False, said % {"votes": votes, "quorum": self.approval.quorum}, is_vote=True)
        if self._has_later_stage():
            return Forecast(False, _("Your vote counts; it waits for others"), is_vote=True)
        seconds = conf.undo_seconds
        return Forecast(False, _("Approved; starts in %(seconds)s s") % {"seconds": f"{seconds:g}"})

    def _has_later_stage(self) -> bool:
        """Whether another stage has to say yes, once this one has."""
        given = [vote.stage for vote in self.approval.votes.all()]
        needs = needs_of(self.approval.amendment, stages_of(self.approval))
        return any(
            stage.number in needs and given.count(stage.number) < stage.quorum
            for stage in stages_of(self.approval)
            if stage.number != self.approval.stage
        )


def alone(approval: Approval) -> str:
    """Why this one is never decided among others; "" if it may be."""
    if approval.request.get("sign"):
        return _("It has to be signed, so it is decided alone; open it.")
    return ""


class Selection:
    """The frozen list, as `user` finds it now. What they may not see is only counted."""

    def __init__(self, picks: Sequence[Pick], user: User) -> None:
        self.picks, self.user = picks, user
        self.now = clock.now()

    @cached_property
    def items(self) -> list[Item]:
        found = approvals_of(self.picks, self.user)
        may = set(Approval.objects.may_decide(self.user).filter(pk__in=found).values_list("pk", flat=True))
        return [
            Item(pick, found[pick.key], self.user, self.now, may_decide=pick.key in may)
            for pick in self.picks
            if pick.key in found
        ]

    @property
    def gone(self) -> int:
        """How many are not there, or not for this person to see."""
        return len(self.picks) - len(self.items)

    def decidable(self, verdict: str) -> list[Item]:
        return [item for item in self.items if not item.forecasts[verdict].is_refused]

    @property
    def votes(self) -> int:
        """How many an approval would not conclude."""
        return sum(item.forecasts[APPROVE].is_vote for item in self.items)

    @property
    def must_type(self) -> bool:
        return len(self.picks) > TYPED_ABOVE

    @property
    def reasons(self) -> list[str]:
        """Presets that the authors of all of them gave."""
        given = [item.page.reasons for item in self.items if REJECT in item.approval.verdicts]
        return [reason for reason in given[0] if all(reason in each for each in given)] if given else []


@dataclass(frozen=True, slots=True)
class Result:
    pick: Pick
    approval: Approval | None
    refused: str = ""

    @property
    def is_done(self) -> bool:
        return not self.refused

    @property
    def is_vote(self) -> bool:
        """It counts, and others have to say yes, too."""
        return self.is_done and self.approval is not None and self.approval.is_open


def decide_all(
    picks: Sequence[Pick], *, by: User, verdict: str, reason: str, operation_id: str, signed_in: str
) -> list[Result]:
    """Decide each by itself, in the order of the list. Sent again, the results are the same."""
    if verdict not in VERDICTS:
        raise Invalid(
            _("Choose what to say to them."), {"verdict": [_("Choose between approving and rejecting.")]}
        )
    if verdict == REJECT and not reason.strip():
        fault = _("Choose or write a reason.")
        raise Invalid(_("Say why: the runs get your reason."), {"reason": [fault]})
    found = approvals_of(picks, by)

    def decide(approval: Approval, pick: Pick) -> None:
        if fault := alone(approval):
            raise Invalid(fault)
        approval.decide(
            by=by,
            verdict=verdict,
            reason=reason,
            revision=pick.revision,
            operation_id=f"{operation_id}-{pick.key.hex}",
            via="bulk",
            seen=ApprovalPage(approval, by).seen,
            signed_in=signed_in,
        )

    return [_done(pick, found.get(pick.key), decide) for pick in picks]


def undo_all(picks: Sequence[Pick], *, by: User) -> list[Result]:
    """Take back what one has decided, each by itself, as far as the runs have not taken it."""
    found = approvals_of(picks, by)

    def undo(approval: Approval, _pick: Pick) -> None:
        if approval.is_open:
            approval.take_back(by=by)
        else:
            approval.undo(by=by)

    return [_done(pick, found.get(pick.key), undo) for pick in picks]


def _done(pick: Pick, approval: Approval | None, act: Callable[[Approval, Pick], None]) -> Result:
    if approval is None:
        return Result(pick, None, _("It is not there any more, or not for you to see."))
    try:
        act(approval, pick)
    except Refusal as refusal:
        return Result(pick, approval, refusal.message)
    return Result(pick, approval)


def approvals_of(picks: Sequence[Pick], user: User) -> dict[uuid.UUID, Approval]:
    """Those that this person may see, with what their pages show. As many statements for a hundred as for one."""
    left = Approval.objects.visible_to(user).filter(run__tombstone=None)  # of an erased one there is no page
    rows = left.for_page().filter(pk__in=[pick.key for pick in picks])
    return {approval.pk: approval for approval in rows}
