"""A time in which somebody else decides for a person: what waits for them moves over, and comes back at its end."""

from __future__ import annotations

import logging
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Least
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from approvals import who
from approvals.text import clock_text, through
from runs.engine import clock
from runs.engine.durably import durably
from runs.errors import Conflict, Invalid, Refusal, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    from approvals.models.approval import Approval

log = logging.getLogger(__name__)

LONGEST = timedelta(days=366)
AGAIN = timedelta(seconds=30)  # what was opened meanwhile, or has come to the person's stage, moves too
AT_ONCE = 200


class Absence(models.Model):
    """One a person at a time. A chore moves their parts when it begins, while it lasts, and back when it ends."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="absences")
    deputy = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField()
    look_at = models.DateTimeField(
        null=True, blank=True, help_text="When a chore looks next; none: it is over."
    )

    class Meta:
        ordering = ("since",)
        constraints = [
            models.CheckConstraint(
                condition=Q(until__gte=models.F("since")), name="absence_ends_after_it_begins"
            ),
            models.UniqueConstraint(
                fields=["person"], condition=Q(look_at__isnull=False), name="absence_one_at_a_time"
            ),
        ]
        indexes = [
            models.Index(
                fields=["look_at"], condition=Q(look_at__isnull=False), name="absence_due"
            ),  # the chore
        ]

    def __str__(self) -> str:
        return f"{self.deputy} for {self.person}"

    @property
    def last_day(self) -> date | None:
        """The day with which it ends; None where it ends within one."""
        until = timezone.localtime(self.until)
        return until.date() - timedelta(days=1) if until.time() == time.min else None

    @classmethod
    def plan(cls, person: User, deputy: User, since: datetime, until: datetime) -> Absence:
        """Let `deputy` decide for `person` from `since` to `until`, which have zones.

        Raises Invalid for who or when does not fit, Conflict if the person has planned another absence.
        """
        now = clock.now()
        since = max(since, now)
        fault = {}
        if deputy.pk == person.pk or not deputy.is_active:
            fault["to"] = [_("Choose somebody else whose account is in use.")]
        if not since < until <= now + LONGEST:
            fault["until"] = [_("Choose a moment after the beginning, at most a year ahead.")]
        if fault:
            raise Invalid(joined([said[0] for said in fault.values()]), fault)
        planned = cls(person=person, deputy=deputy, since=since, until=until, look_at=since)
        try:
            with transaction.atomic():
                planned.save(force_insert=True)
        except IntegrityError:
            raise Conflict(_("You have planned an absence already; end that one first.")) from None
        return planned

    def end(self) -> None:
        """From now on they decide for themselves; what the deputy has not decided comes back within seconds."""
        now = clock.now()
        lasting = Absence.objects.filter(pk=self.pk, look_at__isnull=False, until__gt=now)
        if lasting.update(since=Least("since", Value(now)), until=now, look_at=now) != 1:
            raise Conflict(_("This absence is over already."))
        self.refresh_from_db()

    def tend(self) -> None:
        """What the chore does: move what waits, or bring it back, and say when to look again."""
        now = clock.now()
        over = now >= self.until
        begun = now >= self.since
        left = False
        if over:
            left = self._each(self._given(), lambda approval: approval.recall(self.person))
        elif begun:
            day = self.last_day
            note = f"away {through(day)}" if day is not None else f"away until {clock_text(self.until)}"
            left = self._each(
                self._waiting(), lambda approval: approval.delegate(self.person, self.deputy, note=note)
            ) or self._each(self._taken(), lambda approval: approval.assign(self.person, self.deputy))
        if left:
            look_at: datetime | None = now
        else:
            look_at = None if over else min(now + AGAIN, self.until) if begun else self.since
        durably(lambda: Absence.objects.filter(pk=self.pk, until=self.until).update(look_at=look_at))

    def _waiting(self) -> QuerySet[Approval]:
        """Theirs to decide, and not the deputy's already nor against four eyes."""
        from approvals.models.approval import Approval

        both = Approval.objects.open().may_decide(self.deputy)
        requested = Q(run__created_by=self.deputy) | Q(run__on_behalf_of=self.deputy)
        return Approval.objects.for_user(self.person).exclude(pk__in=both.values("pk")).exclude(requested)

    def _taken(self) -> QuerySet[Approval]:
        """Claimed by them, where the deputy may decide as well."""
        from approvals.models.approval import Approval

        return Approval.objects.open().filter(assignee=self.person).may_decide(self.deputy)

    def _given(self) -> QuerySet[Approval]:
        from approvals.models.approval import Approval

        name = self.deputy.get_username()
        return (
            Approval.objects.open().filter(reviewers__instead_of=self.person, reviewers__name=name).distinct()
        )

    def _each(self, approvals: QuerySet[Approval], verb: Callable[[Approval], None]) -> bool:
        """The oldest first; whether some may be left, after AT_ONCE of them.

        What is refused stays where it is, and keeps none behind it back: it has changed meanwhile, or was decided.
        """
        done, last = 0, None
        while done < AT_ONCE:
            further = (
                Q(opened_at__gt=last.opened_at) | Q(opened_at=last.opened_at, pk__gt=last.pk) if last else Q()
            )
            rows = list(approvals.filter(further).order_by("opened_at", "pk")[: AT_ONCE - done])
            for approval in rows:
                try:
                    verb(approval)
                    done += 1
                except Refusal as refusal:
                    log.info("Approval %s stays with %s: %s", approval.pk, self.person_id, refusal)
            if not rows:
                return False
            last = rows[-1]
        return True


def current(person: User) -> Absence | None:
    """The absence that this person has planned, or is in."""
    if not who.is_person(person):
        return None
    return Absence.objects.filter(person=person, look_at__isnull=False).select_related("deputy").first()
