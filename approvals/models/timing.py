"""What becomes of an approval as time passes: reminders, escalation to others, a deadline that is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from approvals import who
from approvals.models.activity import Activity
from approvals.models.reviewer import Reviewer
from approvals.refusals import TooLate, must_be_open, must_be_revision, must_see
from approvals.reminders import is_last_hour, next_reminder
from approvals.text import checked_text, clock_said, clock_text, storable_text
from approvals.words import ESCALATED, EXTENDED, REMINDED
from runs import secrets
from runs.engine import clock
from runs.errors import Conflict, Invalid, NotAllowed, told

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models.approval import Approval

LONGEST_EXTENSION = timedelta(days=366)


class Timing:
    """The verb `extend` of Approval; `remind` and `escalate`, which chores call when they are due."""

    def extend(
        self: Approval, by: User, until: datetime, reason: str = "", revision: int | None = None
    ) -> None:
        """Move the deadline to a later moment, which has a zone; the run waits on.

        For those who may decide, and the graph's operators. Raises TooLate once the deadline has passed, Invalid for a
        moment that is no later, or more than a year ahead.
        """
        must_see(self, by)
        if not isinstance(until, datetime) or until.utcoffset() is None:
            raise Invalid(
                _("The new deadline is a moment with its zone."), {"until": [_("Give a date and time.")]}
            )
        reason = checked_text(reason, "reason")
        secrets.refuse(reason, "reason")
        self.durably(lambda: self._extend(by, until.astimezone(UTC), storable_text(reason), revision))

    def remind(self: Approval) -> None:
        """Put the reminder that is due into the trail, and say when the next one is. What is closed stays as it is."""
        self.durably(self._remind)

    def escalate(self: Approval) -> None:
        """Ask the others whom the author named for this, in the stage that decides now; a claim ends."""
        self.durably(self._escalate)

    @transaction.atomic
    def _extend(self: Approval, by: User, until: datetime, reason: str, revision: int | None) -> None:
        now = self._hold_with_run()
        must_be_open(self)
        must_be_revision(self, revision)
        refused = who.why_not_tend(self, by)
        if refused:
            raise NotAllowed(refused)
        if self.entry.due_at is None:
            raise Conflict(_("This has no deadline, so there is none to move."))
        if self.entry.due_at <= now:
            raise TooLate(
                told(
                    _("Too late: the deadline was %(when)s; nothing was changed."),
                    when=clock_said(self.entry.due_at),
                )
            )
        if not self.entry.due_at < until <= now + LONGEST_EXTENSION:
            fault = told(
                _("Choose a moment after %(when)s, at most a year ahead."), when=clock_said(self.entry.due_at)
            )
            raise Invalid(fault, {"until": [fault]})
        self.entry.postpone(self.run, until, now)
        self.append(
            Activity(kind=EXTENDED, by=by, text=f"to {clock_text(until)}{reason and f': {reason}'}", at=now),
            due_at=until,
            remind_at=next_reminder(self.opened_at, until, now),
            revision=self.revision + 1,
        )

    @transaction.atomic
    def _remind(self: Approval) -> None:
        self.lock()
        now = clock.now()
        if not self.is_open or self.remind_at is None:
            return
        if self.due_at is None or self.due_at <= now:
            self.change(remind_at=None)
            return
        said = (
            "the last hour has begun"
            if is_last_hour(self.due_at, now)
            else "three quarters of the time have passed"
        )
        self.append(
            Activity(kind=REMINDED, text=said, at=now),
            remind_at=next_reminder(self.opened_at, self.due_at, now),
        )

    @transaction.atomic
    def _escalate(self: Approval) -> None:
        self.lock()
        now = clock.now()
        if not self.is_open or self.escalate_at is None:
            return
        if self.due_at is not None and self.due_at <= now:
            self.change(escalate_at=None)
            return
        names = self.request["escalate"]["to"]
        Reviewer.objects.bulk_create(
            (Reviewer(approval=self, name=name, stage=self.stage) for name in dict.fromkeys(names)),
            ignore_conflicts=True,
        )
        self.append(
            Activity(kind=ESCALATED, text=", ".join(names), at=now),
            escalate_at=None,
            assignee=None,
            revision=self.revision + 1,
        )
