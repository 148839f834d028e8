"""Telling a parent which of its children have ended: soon after their ends, many of them in one short transaction.

A child's end takes no lock but its own. It leaves a row (`UntoldEnd`) in its transaction, so no end is lost; right
after the commit its process tells the parent all that there is to tell, under the parent's lock. One thread of a
process is at it for a parent, and looks once more for those that ended meanwhile; the others go on. What a killed
process has left behind a chore tells.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, QuerySet

from runs import chores
from runs.core import codec
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.portion import Portion
from runs.models.entry import CHILD, DONE, OPEN, LedgerEntry, wake
from runs.models.fan_out import FanOut
from runs.models.run import Run
from runs.models.statuses import FAILED
from runs.models.untold_end import UntoldEnd

log = logging.getLogger(__name__)

AT_A_TIME = 100  # ends at most, told in one transaction
LEFT_BEHIND = timedelta(seconds=2)  # after this a chore tells what nobody has told
LEASE = timedelta(seconds=15)  # of that chore; a parent waits for it if its process is killed

BY = "family"  # who answers, and who cancels
CLOSED = "cancelled"  # the status of an entry whose parent ended before its children

_at_it: dict[
    uuid.UUID, bool
] = {}  # parents that a thread of this process tells; True: it is to look once more
_guard = threading.Lock()


def leave_word(child: Run, now: datetime) -> None:
    """In the transaction that ended the child. Once, also if it is repaired and ends again: what the parent was told,
    it may have gone on with.

    The child's own row is left alone: a second UPDATE in one transaction makes PostgreSQL check its foreign keys, and
    that waits for whoever has locked the parent.
    """
    word = UntoldEnd(child=child, parent=child.parent_id, status=child.status, at=now + LEFT_BEHIND)
    UntoldEnd.objects.bulk_create([word], ignore_conflicts=True)
    transaction.on_commit(partial(tell, child.parent_id))


def tell(parent_id: uuid.UUID) -> None:
    """Tell a run what ends of its children there are. What goes wrong is left to the chore."""
    with _guard:
        if parent_id in _at_it:
            _at_it[parent_id] = True
            return
        _at_it[parent_id] = False
    try:
        while True:
            boundary("tell parent")
            durably(lambda: tell_all(parent_id))
            boundary("told parent")
            with _guard:
                if not _at_it[parent_id]:
                    del _at_it[parent_id]
                    return
                _at_it[parent_id] = False
    except Exception:
        log.exception("Run %s could not be told that children have ended; a chore will do it", parent_id)
        _leave(parent_id)
    except BaseException:
        _leave(parent_id)
        raise


def tell_of(child: Run) -> None:
    """After a commit that may have ended it, and whose answer may have been lost."""
    if child.parent_id is not None:
        tell(child.parent_id)


def _leave(parent_id: uuid.UUID) -> None:
    with _guard:
        del _at_it[parent_id]


def tell_all(parent_id: uuid.UUID) -> None:
    """Until there is nothing to tell; as many in each transaction as it tells in a moment."""
    portion = Portion(AT_A_TIME)
    while UntoldEnd.objects.filter(parent=parent_id).exists():
        _tell_some(parent_id, portion)
        portion.end()


@transaction.atomic
def _tell_some(parent_id: uuid.UUID, portion: Portion) -> None:
    parent, now = Run.objects.lock(parent_id)
    untold = UntoldEnd.objects.filter(parent=parent_id).select_related("child").order_by("child")
    words = list(untold[: portion.begin()])  # read after the lock: nobody else tells these
    ids = [word.pk for word in words]
    for status in {word.status for word in words}:
        Run.objects.filter(pk__in=[word.pk for word in words if word.status == status]).update(told=status)
    answered, of_many = 0, defaultdict(list)
    for word in words:
        child = word.child
        child.told = word.status
        if child.fan_out_id is None:
            answered += answer(LedgerEntry.objects.filter(child=child), end_of(child), now)
        else:
            of_many[child.fan_out_id].append(child)
    UntoldEnd.objects.filter(pk__in=ids).delete()
    for fan_out in FanOut.objects.filter(pk__in=of_many).annotate(now=F("entry__status")).order_by("pk"):
        answered += _count(fan_out, of_many[fan_out.pk], parent, now)
    if answered:
        wake(parent, now, answered)


def _count(fan_out: FanOut, ended: list[Run], parent: Run, now: datetime) -> int:
    """Some more of many have ended; only the last one answers the entry.

    Where the entry was closed with its parent, which goes on, others begin once the parent has taken all up.
    """
    for child in ended:
        fan_out.count(child)
    if ended[0].detached or not (parent.ended or parent.ending or fan_out.now == CLOSED):
        if fan_out.release(now):
            announce()
    fan_out.save()
    if fan_out.ended < fan_out.total:
        return 0
    return answer(LedgerEntry.objects.filter(pk=fan_out.entry_id), fan_out.counts, now)


def end_of(child: Run) -> dict[str, str]:
    """What its parent is told, also of a child that was repaired since. The final state is not in it: it stands in the
    child's own rows, under its head.
    """
    kind, error, head = child.error_kind, child.error, child.head
    if child.told_kind:
        first = child.checkpoints.filter(kind="fail").order_by("seq")
        kind, (error, head) = child.told_kind, first.values_list("reason", "digest")[0]
    return {
        "run": str(child.pk),
        "status": child.told,
        "error_kind": kind if child.told == FAILED else "",
        "error": error if child.told == FAILED else "",
        "head": head,
    }


def answer(entries: QuerySet[LedgerEntry], result: Mapping[str, object], now: datetime) -> int:
    """Give those that are open their one answer, under the lock of their run; how many they were."""
    still_open = entries.filter(kind=CHILD, status=OPEN)
    answered = {"answered_at": now, "answered_by": BY, "effective_at": now}
    return still_open.update(status=DONE, result=codec.dumps(result), **answered)


def _begin_anew() -> None:
    """In a forked child nobody tells, and no lock is held."""
    global _guard
    _at_it.clear()
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def register() -> None:
    """The chore that tells what was left behind."""

    def do(child: uuid.UUID) -> None:
        for parent_id in UntoldEnd.objects.filter(pk=child).values_list("parent", flat=True):
            tell_all(parent_id)

    chores.also(chores.Chore("ends of children", UntoldEnd.objects.all, "at", do, LEASE))
