"""Mail in quiet hours: held until they end, then told in one mail, but for what would be too late by then. Likewise
what one is given for the time of an absence, which comes all at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import transaction

from approvals.models.notice import Notice, NoticeWish
from approvals.notices import words
from runs.engine.durably import durably

if TYPE_CHECKING:
    from django.db.models import QuerySet

MOST = 50  # in one mail
WHILE_MORE_COME = timedelta(seconds=30)


def with_all(notices: QuerySet[Notice]) -> QuerySet[Notice]:
    """With what a mail is written from."""
    return notices.select_related(
        *("person", "target", "approval__entry", "approval__conclusion__by"),
        *("approval__run__created_by", "approval__run__tombstone"),
    )


def quiet_until(notice: Notice, now: datetime) -> datetime | None:
    """When the quiet hours of who gets this mail end; None where it is not quiet."""
    if notice.channel != words.MAIL:
        return None
    wish = NoticeWish.objects.filter(person=notice.person_id).first()
    quiet = wish.quiet if wish is not None else None
    return quiet.ends(now) if quiet is not None else None


def is_urgent(notice: Notice, end: datetime) -> bool:
    """It asks for something whose deadline is not after the end of the quiet hours."""
    due_at = notice.approval.due_at
    return notice.occasion in words.WHILE_OPEN and due_at is not None and due_at <= end


def held_until(notice: Notice, now: datetime) -> datetime | None:
    """Until when this is not to be sent; None: it goes now."""
    end = quiet_until(notice, now)
    return None if end is None or is_urgent(notice, end) else end


def gather(lead: Notice) -> bool:
    """Put what was held for the same person into the mail of `lead`. False if `lead` itself went into another one.

    Which they are stands in their rows before anything is sent, so that a second try tells the same under the same id.
    """
    return durably(lambda: _gather(lead))


@transaction.atomic
def _gather(lead: Notice) -> bool:
    # Two that were held for one person may be taken at the same moment; one of them waits here for the other. A person
    # need not have wishes, so it is the person's own row.
    get_user_model().objects.select_for_update(no_key=True).filter(pk=lead.person_id).first()
    # Who drops it meanwhile, decided or erased, waits, and then releases what is put into its mail here.
    its_own = Notice.objects.select_for_update().filter(pk=lead.pk, status=words.WAITING, tries=lead.tries)
    if its_own.first() is None:
        return False
    if lead.tries:
        return True
    # What somebody is just dropping goes into no mail: waiting for it while `lead` is locked could be a deadlock.
    others = (
        Notice.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(
            person=lead.person_id, channel=words.MAIL, status=words.WAITING, held=True, tries=0, bundled=None
        )
        .exclude(pk=lead.pk)
        .order_by("made_at", "pk")
        .values_list("pk", flat=True)
    )
    room = MOST - 1 - lead.bundled.count()
    Notice.objects.filter(pk__in=list(others[:room])).update(status=words.BUNDLED, send_at=None, lead=lead)
    return True


def parts(notice: Notice) -> list[Notice]:
    """What its mail would tell, itself first."""
    if not notice.held:
        return [notice]
    return [notice, *with_all(notice.bundled.filter(status=words.BUNDLED)).order_by("made_at", "pk")]
