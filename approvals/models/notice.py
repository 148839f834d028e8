"""What is told about approvals, to whom: the outbox."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q

from approvals.notices.quiet import Quiet
from approvals.notices.words import BUNDLED, CHANNELS, DROPPED, FAILED, OCCASIONS, SENT, STATUSES, WAITING
from runs.engine import clock
from runs.engine.durably import durably
from runs.engine.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Sequence

# Before the second try, the third and so on; after the last it is given up. In all a bit more than two days.
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440))


class Occasion(models.Model):
    """Something happened of which people may want to hear; written with the change, by `Approval.append` alone."""

    approval = models.ForeignKey(
        "approvals.Approval", on_delete=models.PROTECT, related_name="occasions", db_index=False
    )
    seq = models.PositiveIntegerField(help_text="Of the row in the trail that tells of it.")
    kind = models.CharField(max_length=10)
    at = models.DateTimeField()
    look_at = models.DateTimeField(
        null=True, blank=True, help_text="When a chore finds out whom to tell; none: it has."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["approval", "seq"], name="occasion_once"),
            models.CheckConstraint(condition=Q(kind__in=OCCASIONS), name="occasion_known"),
        ]
        indexes = [
            models.Index(fields=["look_at"], condition=Q(look_at__isnull=False), name="occasion_due")
        ]  # the chore

    def __str__(self) -> str:
        return f"{self.kind} {self.approval_id}"


class NoticeQuerySet(models.QuerySet["Notice"]):
    def release(self, now: datetime) -> int:
        """Those that stand in the mail of one that is not sent: each goes for itself, or in another mail."""
        return self.filter(status=BUNDLED).update(status=WAITING, send_at=now, lead=None)


class Notice(models.Model):
    """One message to one person by mail, or to one target. Its id goes with it, so that who gets it twice can tell."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    approval = models.ForeignKey("approvals.Approval", on_delete=models.PROTECT, related_name="notices")
    occasion = models.CharField(max_length=10)
    round = models.PositiveIntegerField(
        help_text="Tells one reminder from the next, and an edit from the one before."
    )
    channel = models.CharField(max_length=7)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="notices"
    )
    target = models.ForeignKey(
        "approvals.Target", null=True, blank=True, on_delete=models.CASCADE, related_name="notices"
    )
    status = models.CharField(max_length=7, default=WAITING)
    made_at = models.DateTimeField()
    send_at = models.DateTimeField(
        null=True, blank=True, help_text="When it is tried next; none: it is over."
    )
    held = models.BooleanField(default=False, help_text="It waited for the end of its person's quiet hours.")
    lead = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="bundled",
        help_text="The notice in whose mail this one stands.",
    )
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="", help_text="Of the last try.")

    objects = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "occasion", "round", "channel", "person"],
                condition=Q(person__isnull=False),
                name="notice_once_a_person",
            ),
            models.UniqueConstraint(
                fields=["approval", "occasion", "round", "target"],
                condition=Q(target__isnull=False),
                name="notice_once_a_target",
            ),
            models.CheckConstraint(
                condition=Q(person__isnull=False, target=None) | Q(person=None, target__isnull=False),
                name="notice_has_one_address",
            ),
            models.CheckConstraint(condition=Q(status__in=STATUSES), name="notice_status_known"),
            models.CheckConstraint(condition=Q(channel__in=CHANNELS), name="notice_channel_known"),
            models.CheckConstraint(
                condition=Q(status=WAITING, send_at__isnull=False) | (~Q(status=WAITING) & Q(send_at=None)),
                name="notice_waits_for_a_moment",
            ),
        ]
        indexes = [
            models.Index(fields=["send_at"], condition=Q(status=WAITING), name="notice_due"),  # the chore
            models.Index(fields=["-made_at"], condition=Q(status=FAILED), name="notice_failed"),  # operators
        ]

    def __str__(self) -> str:
        return f"{self.occasion} to {self.person or self.target}"

    def intend(self) -> bool:
        """Count the try before it is made: what kills its process is not tried for ever. False: it is not ours."""
        mine = Notice.objects.filter(pk=self.pk, status=WAITING, tries=self.tries)
        if not self._change(mine, tries=F("tries") + 1):
            return False
        self.tries += 1
        return True

    @cached_property
    def parts(self) -> list[Notice]:
        """What one mail tells: this, and what was held with it and is still of use."""
        return [self]

    def hold(self, until: datetime) -> None:
        """Wait for the end of the quiet hours."""
        self._end(send_at=until, held=True)

    def done(self, now: datetime) -> None:
        self._end(status=SENT, send_at=None, sent_at=now, error="")

    def drop(self, why: str) -> None:
        """It is no longer of use: decided, or somebody else's. What stands in its mail may be, and is released."""
        self._end(status=DROPPED, send_at=None, error=why)

    def leave(self, why: str) -> None:
        """Out of the mail of another one, before it is sent: no longer of use."""
        self._change(Notice.objects.filter(pk=self.pk, status=BUNDLED), status=DROPPED, error=why)

    def put_off(self, error: str, now: datetime, *, for_good: bool = False) -> datetime | None:
        """Try again after a pause that grows, or give up; when it is tried next."""
        if for_good or self.tries > len(PAUSES):
            self._end(status=FAILED, send_at=None, error=error)
            return None
        again = now + PAUSES[self.tries - 1]
        self._end(send_at=again, error=error)
        return again

    def _end(self, **changes: object) -> None:
        """Of itself, and of what stands in its mail: it ends with it, unless that mail is dropped. One transaction."""
        mine = Notice.objects.filter(pk=self.pk, status=WAITING, tries=self.tries)

        @transaction.atomic
        def write() -> None:
            if not mine.update(**changes) or "status" not in changes:
                return
            bundled = Notice.objects.filter(lead=self.pk)
            if changes["status"] == DROPPED:
                bundled.release(clock.now())
            else:
                bundled.filter(status=BUNDLED).update(**changes)

        durably(write)
        for name, value in changes.items():
            setattr(self, name, value)

    def _change(self, rows: models.QuerySet[Notice], **changes: object) -> int:
        def write() -> int:
            with transaction.atomic():
                return rows.update(**changes)

        return durably(write)


class NoticeWish(models.Model):
    """Of what a person wants no mail, when none at all, and in which language; without a row, each and at once."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="notice_wish"
    )
    unwanted = models.JSONField(default=list, blank=True)
    quiet_from = models.TimeField(null=True, blank=True, help_text="Mail is held from then; none: never.")
    quiet_until = models.TimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, blank=True, default="", help_text="Whose clock that is.")
    language = models.CharField(max_length=10, blank=True, default="", help_text="Empty: the site's.")

    def __str__(self) -> str:
        return f"{self.person}: no {', '.join(self.unwanted)}"

    @classmethod
    def keep(
        cls, person: models.Model, unwanted: Sequence[str], quiet: Quiet | None = None, language: str = ""
    ) -> None:
        """What is held is looked at again, for other hours may be quiet now."""
        kept = {
            "unwanted": sorted(set(unwanted)),
            "quiet_from": quiet.begin if quiet is not None else None,
            "quiet_until": quiet.end if quiet is not None else None,
            "zone": quiet.zone if quiet is not None else "",
            "language": language,
        }

        @transaction.atomic
        def write() -> None:
            cls.objects.update_or_create(person=person, defaults=kept)
            Notice.objects.filter(person=person, status=WAITING, held=True).update(send_at=clock.now())

        durably(write)

    @classmethod
    def speak(cls, person: models.Model, language: str) -> None:
        """Write to them in this language from now on."""

        @transaction.atomic
        def write() -> None:
            cls.objects.update_or_create(person=person, defaults={"language": language})

        durably(write)

    @property
    def quiet(self) -> Quiet | None:
        if self.quiet_from is None or self.quiet_until is None:
            return None
        return Quiet(self.quiet_from, self.quiet_until, self.zone)
