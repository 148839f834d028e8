"""How a reviewer gives their part in one approval to somebody else, and takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from approvals import who
from approvals.models.activity import Activity
from approvals.models.reviewer import Reviewer
from approvals.refusals import must_be_allowed, must_see
from approvals.words import DELEGATED, RECALLED
from runs import secrets
from runs.errors import Conflict, Invalid, NotAllowed, told
from runs.naming import someone

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models.approval import Approval


class Delegating:
    """The verbs `delegate` and `recall` of Approval. A part is one vote, whoever gives it: it moves, and comes back."""

    def delegate(self: Approval, by: User, to: User, revision: int | None = None, note: str = "") -> None:
        """Let `to` decide in the place of `by`, who may not do so meanwhile; the trail says "to for by".

        `to` sees the run from then on; `note` stands in the trail. Raises Invalid if `to` may decide already, or is
        barred; NotAllowed if `by` has no part of their own.
        """
        must_see(self, by)
        secrets.refuse(note, "note")
        self.durably(lambda: self._delegate(by, to, revision, note))

    def recall(self: Approval, by: User, revision: int | None = None) -> None:
        """Take one's part back. Raises Conflict if it was not given, or was used."""
        must_see(self, by)
        self.durably(lambda: self._recall(by, revision))

    @transaction.atomic
    def _delegate(self: Approval, by: User, to: User, revision: int | None, note: str) -> None:
        self._hold_open(revision)
        held = must_be_allowed(self, by).instead_of
        if held is not None:
            raise NotAllowed(
                told(
                    _("You stand in for %(who)s, who alone can give this to somebody else."),
                    who=someone(held),
                )
            )
        if self.votes.filter(by=by).exists():
            raise Conflict(_("You have voted, so there is nothing to give away; take your vote back first."))
        self._must_be_free(to)
        Reviewer.objects.create(approval=self, name=to.get_username(), stage=self.stage, instead_of=by)
        self._hand_over(
            Activity(kind=DELEGATED, by=by, to=to, text=note),
            to if self.assignee_id == by.pk else self.assignee,
        )

    @transaction.atomic
    def _recall(self: Approval, by: User, revision: int | None) -> None:
        self._hold_open(revision)
        given = Reviewer.objects.filter(approval=self, stage=self.stage, instead_of=by).first()
        if given is None:
            raise Conflict(_("You have not given your part in this to anybody."))
        used = self.votes.filter(decision__instead_of=by).select_related("by").first()
        if used is not None:
            raise Conflict(
                told(_("%(who)s has voted for you, and can take that back."), who=someone(used.by))
            )
        holder = who.named(given.name)
        given.delete()
        theirs = self.assignee is not None and self.assignee.get_username() == given.name
        self._hand_over(Activity(kind=RECALLED, by=by, to=holder), None if theirs else self.assignee)

    def _must_be_free(self: Approval, to: User) -> None:
        """Raises Invalid unless `to` could decide this, and does not yet."""
        name = someone(to)
        fault = ""
        if who.bar(self, to):
            fault = told(_("%(who)s may not decide this, whoever asks them; choose somebody else."), who=name)
        elif not who.why_not(self, to):
            fault = told(_("%(who)s may decide this already; assign it to them instead."), who=name)
        elif Reviewer.objects.filter(approval=self, stage=self.stage, instead_of=to).exists():
            fault = told(_("%(who)s has given their own part away; choose somebody else."), who=name)
        if fault:
            raise Invalid(fault, {"to": [fault]})
