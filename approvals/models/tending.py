"""What people do with an approval besides deciding it: comment, claim, release, assign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Sum
from django.utils.translation import gettext_lazy as _

from approvals import mentions, who
from approvals.files import LARGEST, checked, must_have_room
from approvals.models.activity import Activity
from approvals.refusals import must_be_allowed, must_be_open, must_be_revision, must_not_be_erased, must_see
from approvals.text import checked_text, storable_text
from approvals.words import ASSIGNED, ATTACHED, CLAIMED, COMMENTED, RELEASED
from runs import secrets
from runs.engine import blobs, clock
from runs.errors import Conflict, Invalid, NotAllowed, told
from runs.models import Run
from runs.naming import someone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from approvals.files import Checked, Sent
    from approvals.models.approval import Approval
    from runs.engine.blobs import Laid


class Tending:
    """The verbs `comment`, `claim`, `release` and `assign` of Approval. All but a comment move the revision."""

    def comment(self: Approval, by: User, text: str, files: Sequence[Sent] = ()) -> Activity:
        """Say something, also when it is decided; who may see it may comment, and add files.

        People named with an @ are told of it. Raises Invalid, by the names `text` and `files`, also for a mention of
        somebody who may not see this.
        """
        must_see(self, by)
        text = checked_text(text, "text")
        if not text.strip() and not files:
            raise Invalid(_("The comment is empty; write something."), {"text": [_("Write something.")]})
        secrets.refuse(text, "text")
        mentions.must_see(self, text)
        fit = checked(files)
        must_have_room(fit, self.bytes_attached)
        # before the transaction: nobody waits for the Run while bytes are written; a refused file is swept later
        laid = [(file, blobs.lay_down(file.content, file.media_type, LARGEST)) for file in fit]
        return self.durably(lambda: self._comment(by, storable_text(text), laid))

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
    def _comment(self: Approval, by: User, text: str, laid: Sequence[tuple[Checked, Laid]]) -> Activity:
        if laid:
            Run.objects.lock(self.run_id)  # which a blob's use refers to; before the approval, as everywhere
        self.lock()
        must_not_be_erased(self)
        must_have_room([file for file, _bytes in laid], self.bytes_attached)
        now = clock.now()
        said = Activity(kind=COMMENTED, by=by, text=text, at=now)
        if text.strip():
            self.append(said)
        for file, stored in laid:
            said = self._attach(by, file, stored, now)
        return said

    def _attach(self: Approval, by: User, file: Checked, stored: Laid, now: datetime) -> Activity:
        """The run's use of the bytes, a link of the chain with their digest, and the row that people load them by."""
        blob = blobs.take_up(self.run_id, stored)
        row = Activity(kind=ATTACHED, by=by, text=f"{file.name} (sha256 {blob.sha256})", at=now)
        self.append(row)
        self.attachments.create(
            activity=row,
            blob_id=blob.sha256,
            name=file.name,
            media_type=file.media_type,
            size=file.size,
            by=by,
            at=now,
        )
        return row

    @property
    def bytes_attached(self: Approval) -> int:
        return self.attachments.aggregate(all=Sum("size"))["all"] or 0

    @transaction.atomic
    def _claim(self: Approval, by: User, revision: int | None) -> None:
        self._hold_open(revision)
        must_be_allowed(self, by)
        if self.assignee_id == by.pk:
            return
        if self.assignee is not None:
            raise Conflict(
                told(
                    _("%(who)s has this; ask them to release it, or assign it."),
                    who=someone(self.assignee),
                )
            )
        self._hand_over(Activity(kind=CLAIMED, by=by, to=by), by)

    @transaction.atomic
    def _release(self: Approval, by: User, revision: int | None) -> None:
        self._hold_open(revision)
        if self.assignee is None:
            raise Conflict(_("Nobody has this, so there is nothing to release."))
        if self.assignee_id != by.pk:
            raise NotAllowed(
                told(_("Only %(who)s, who has this, can release it."), who=someone(self.assignee))
            )
        self._hand_over(Activity(kind=RELEASED, by=by), None)

    @transaction.atomic
    def _assign(self: Approval, by: User, to: User, revision: int | None) -> None:
        self._hold_open(revision)
        must_be_allowed(self, by)
        if who.why_not(self, to):
            fault = told(_("%(who)s may not decide this; assign it to somebody who may."), who=someone(to))
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
