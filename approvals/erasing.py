"""What approvals lose when their run is erased: titles, reasons, payloads, comments, drafts. Who decided when stays."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any  # a signal's further arguments

from django.db.models import Case, Q, Value, When
from django.dispatch import receiver

from approvals.models import Activity, Approval, Attachment, Decision, KeptDraft, Notice
from approvals.notices.words import BUNDLED, DROPPED, WAITING
from approvals.words import CLOSED, EXPIRED, OPENED
from runs.engine.passages import EMPTY, MARKED, Erasable
from runs.errors import Conflict
from runs.hooks import run_erasing
from runs.models import Blob, Tombstone
from runs.models.tombstone import ERASED

if TYPE_CHECKING:
    from runs.models import Run

OF_ITS_RUN = "(SELECT a.run_id FROM approvals_approval a WHERE a.id = OLD.approval_id)"
DECISION = Erasable({"payload": EMPTY, "seen": EMPTY, "reason": MARKED}, run=OF_ITS_RUN)
ACTIVITY = Erasable({"text": MARKED}, run=OF_ITS_RUN)
IN_OUR_WORDS = (OPENED, CLOSED, EXPIRED)  # kinds of activity whose text is a word of ours
AT_A_TIME = 50


@receiver(run_erasing, dispatch_uid="approvals.erase")
def empty(run: Run, most: int, now: datetime, **_signal: Any) -> int:
    """Empty some approvals of the run, each whole under its lock: who writes to one afterwards sees the tombstone."""
    full = Approval.objects.select_for_update().filter(run=run).exclude(title=ERASED).order_by("pk")
    approvals = [approval.pk for approval in full[: min(most, AT_A_TIME)]]
    if not approvals:
        return 0
    marked = Case(When(reason="", then=Value("")), default=Value(ERASED))
    Decision.objects.filter(approval__in=approvals).update(payload="", seen="", reason=marked)
    told = Activity.objects.filter(approval__in=approvals).exclude(Q(text="") | Q(kind__in=IN_OUR_WORDS))
    told.update(text=ERASED)
    KeptDraft.objects.filter(approval__in=approvals).delete()
    attached = Attachment.objects.filter(approval__in=approvals)
    contents = list(attached.values_list("blob_id", flat=True))
    attached.delete()
    Blob.objects.let_go(contents, now)
    notices = Notice.objects.filter(approval__in=approvals)
    notices.filter(status__in=(WAITING, BUNDLED)).update(status=DROPPED, send_at=None)
    notices.exclude(error="").update(error="")
    Approval.objects.filter(pk__in=approvals).update(title=ERASED, body="")
    return len(approvals)


def must_not_be_erased(approval: Approval) -> None:
    """Under the approval's lock, for whoever adds words to it. Raises Conflict."""
    if Tombstone.objects.filter(run=approval.run_id).exists():
        raise Conflict("This was erased together with its run; nothing can be said to it any more.")
