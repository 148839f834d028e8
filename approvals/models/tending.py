"""What people do with an approval besides deciding it: comment, claim, release, assign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from approvals import who
from approvals.models.activity import Activity
from approvals.refusals import must_be_allowed, must_be_open, must_be_revision, must_see
from approvals.text import checked_text, storable_text
from approvals.words import ASSIGNED, CLAIMED, COMMENTED, RELEASED
from runs import secrets
from runs.engine import clock
from runs.errors import Conflict, Invalid, NotAllowed

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models.approval import Approval


class Tending:
    """The verbs `comment`, `claim`, `release` and `assign` of Approval. All but a comment move the revision."""

    def comment(self: Approval, by: User, text: str) -> Activity:
        """Say something, also when it is decided; who may see it may comment."""
        must_see(self, by)
        text = checked_text(text, "text")
        if not text.strip():
            raise Invalid("The comment is empty; write something.", {"text": ["Write something."]})
        secrets.refuse(text, "text")
        return self.durably(lambda: self._comment(by, storable_text(text)))

    def claim(self: Approval, by: User, revision: int | None = None) -> None:
        """Take it, so that others see who is at it; they may still decide. Claimed twice it stays as it is."""
        must_see(self, by)
        self.durably(lambda: self._claim(by, revision))

    def release(self: Approval, by: User, revision: int | None = None) -> None:
        """Let go of what one has taken."""
        must_see(self, by)
        self.durably(lambda: self._release(by, revision))

    def assign(self: Approval, by: User, to: User, revision: int | None = None) -> None:
        """Give it to somebody who may decide it. Raises Invalid if `to` may not."""
        must_see(self, by)
        self.durably(lambda: self._assign(by, to, revision))

    @transaction.atomic
    def _comment(self: Approval, by: User, text: str) -> Activity:
        self.lock()
        said = Activity(kind=COMMENTED, by=by, text=text, at=clock.now())
        self.append(said)
        return said

    @transaction.atomic
    def _claim(self: Approval, by: User, revision: int | None) -> None:
        self._hold_open(revision)
        must_be_allowed(self, by)
        if self.assignee_id == by.pk:
            return
        if self.assignee is not None:
            raise Conflict(f"{self.assignee.get_username()} has this; ask them to release it, or assign it.")
        self._hand_over(Activity(kind=CLAIMED, by=by, to=by), by)

    @transaction.atomic
    def _release(self: Approval, by: User, revision: int | None) -> None:
        self._hold_open(revision)
        if self.assignee is None:
            raise Conflict("Nobody has this, so there is nothing to release.")
        if self.assignee_id != by.pk:
            raise NotAllowed(f"Only {self.assignee.get_username()}, who has this, can release it.")
        self._hand_over(Activity(kind=RELEASED, by=by), None)

    @transaction.atomic
    def _assign(self: Approval, by: User, to: User, revision: int | None) -> None:
        self._hold_open(revision)
        must_be_allowed(self, by)
        if who.why_not(self, to):
            fault = f"{to.get_username()} may not decide this; assign it to somebody who may."
            raise Invalid(fault, {"to": [fault]})
        if self.assignee_id != to.pk:
            self._hand_over(Activity(kind=ASSIGNED, by=by, to=to), to)

    def _hold_open(self: Approval, revision: int | None) -> None:
        self.lock()
        must_be_open(self)
        must_be_revision(self, revision)

    def _hand_over(self: Approval, row: Activity, assignee: User | None) -> None:
        row.at = clock.now()
        self.append(row, assignee=assignee, revision=self.revision + 1)
