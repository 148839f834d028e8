"""What approvals lose when their run is erased: titles, reasons, payloads, comments, drafts. Who decided when stays."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any  # a signal's further arguments

from django.db.models import Case, Exists, OuterRef, Q, Value, When
from django.dispatch import receiver

from approvals.models import Activity, Approval, Attachment, Decision, KeptDraft, Notice, Occasion
from approvals.notices.words import BUNDLED, DROPPED, WAITING
from approvals.words import CLOSED, EXPIRED, OPENED
from runs.engine.passages import EMPTY, MARKED, Erasable
from runs.hooks import run_erasing
from runs.models import Blob
from runs.models.tombstone import ERASED

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from runs.models import Run

OF_ITS_RUN = "(SELECT a.run_id FROM approvals_approval a WHERE a.id = OLD.approval_id)"
DECISION = Erasable({"payload": EMPTY, "seen": EMPTY, "reason": MARKED}, run=OF_ITS_RUN)
ACTIVITY = Erasable({"text": MARKED}, run=OF_ITS_RUN)
IN_OUR_WORDS = (OPENED, CLOSED, EXPIRED)  # kinds of activity whose text is a word of ours
AT_A_TIME = 50

FULL_DECISION = ~Q(payload="") | ~Q(seen="") | ~Q(reason__in=("", ERASED))
FULL_ACTIVITY = ~Q(text__in=("", ERASED)) & ~Q(kind__in=IN_OUR_WORDS)
UNSENT = Q(status__in=(WAITING, BUNDLED))


@receiver(run_erasing, dispatch_uid="approvals.erase")
def empty(run: Run, most: int, now: datetime, **_signal: Any) -> int:
    """Empty some approvals of the run, each whole under its lock: who writes to one afterwards sees the tombstone."""
    approvals = _some_full(run, min(most, AT_A_TIME))
    if not approvals:
        return 0
    marked = Case(When(reason="", then=Value("")), default=Value(ERASED))
    Decision.objects.filter(approval__in=approvals).update(payload="", seen="", reason=marked)
    Activity.objects.filter(FULL_ACTIVITY, approval__in=approvals).update(text=ERASED)
    KeptDraft.objects.filter(approval__in=approvals).delete()
    attached = Attachment.objects.filter(approval__in=approvals)
    contents = list(attached.values_list("blob_id", flat=True))
    attached.delete()
    Blob.objects.let_go(contents, now)
    # before its notices: who is just writing those holds the occasion
    Occasion.objects.filter(approval__in=approvals).update(look_at=None)
    notices = Notice.objects.filter(approval__in=approvals)
    notices.filter(UNSENT).update(status=DROPPED, send_at=None)
    Notice.objects.filter(lead__approval__in=approvals).release(now)  # what is told of other approvals
    notices.exclude(error="").update(error="")
    Approval.objects.filter(pk__in=approvals).update(title=ERASED, body="")
    return len(approvals)


def _some_full(run: Run, most: int) -> list[uuid.UUID]:
    """Keys of approvals that hold something still, locked."""
    of_run = Approval.objects.filter(run=run).order_by("pk")
    untouched = of_run.select_for_update().exclude(title=ERASED).values_list("pk", flat=True)
    if found := list(untouched[:most]):
        return found
    # The mark may also be what an author asked. Who holds one of these may be adding to it: waited for, then looked at.
    list(of_run.select_for_update().values_list("pk", flat=True))
    return list(of_run.filter(_holds_something()).values_list("pk", flat=True)[:most])


def _holds_something() -> Q:
    def some(rows: QuerySet[Any]) -> Exists:
        return Exists(rows.filter(approval=OuterRef("pk")))

    return (
        ~Q(body="")
        | Q(some(Decision.objects.filter(FULL_DECISION)))
        | Q(some(Activity.objects.filter(FULL_ACTIVITY)))
        | Q(some(KeptDraft.objects.all()))
        | Q(some(Attachment.objects.all()))
        | Q(some(Occasion.objects.filter(look_at__isnull=False)))
        | Q(some(Notice.objects.filter(UNSENT | ~Q(error=""))))
    )
