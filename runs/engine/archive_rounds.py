"""The chore that archives by age: a walk over families in order of their end, each hour from the beginning.

What may not be archived is passed by, however many of it there are, and met again in the next round.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta

from django.db import connections
from django.db.models import Q, QuerySet
from django.utils import timezone

from runs import chores
from runs.conf import conf
from runs.engine import archiving, clock
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.errors import Conflict
from runs.models.archival import ArchiveRound
from runs.models.run import Run

BY = "the archive"
EVERY = timedelta(hours=1)
AT_A_TIME = 100  # families that one call looks at
LONGEST_SECONDS = 20.0  # of one call; well below a chore's lease


def prepare(using: str = "default", **_: object) -> None:
    """The one row, from which the chore is due; put there after every migrate."""
    there = ArchiveRound._meta.db_table in connections[using].introspection.table_names()
    if there and not ArchiveRound.objects.using(using).exists():
        ArchiveRound.objects.using(using).create(look_at=timezone.now())


def walk(pk: int) -> None:
    """Begin with what ended long enough ago, from where the walk stands; what was begun is another chore's."""
    until = time.monotonic() + LONGEST_SECONDS
    here = ArchiveRound.objects.get(pk=pk)
    now = clock.now()
    ended_by = now - conf.archive_after
    reason = f"Ended {conf.archive_after.days} days ago or earlier."
    tops = list(ended_before(ended_by, here.after_at, here.after_run)[:AT_A_TIME])
    looked = 0
    for top in tops:
        if looked and time.monotonic() >= until:
            break
        boundary("archive by age")
        try:
            durably(lambda top=top: archiving.begin(top.pk, reason, BY, ended_by, due=True))
        except Conflict:
            pass  # it is kept, waits for repair, or has a run that has ended later
        looked += 1
    goes_on = looked < len(tops) or len(tops) == AT_A_TIME
    stands = {"after_at": None, "after_run": None}
    if goes_on:
        stands = {"after_at": tops[looked - 1].finished_at, "after_run": tops[looked - 1].pk}
    durably(
        lambda: ArchiveRound.objects.filter(pk=pk).update(look_at=now if goes_on else now + EVERY, **stands)
    )


def ended_before(
    moment: datetime, after_at: datetime | None = None, after_run: uuid.UUID | None = None
) -> QuerySet[Run]:
    """Tops of families in order of their end, from one on; an index has just these (`run_to_archive`)."""
    tops = Run.objects.filter(parent=None, archived_at=None, finished_at__lte=moment)
    if after_at is not None:
        same_moment = Q(finished_at=after_at, pk__gt=after_run)
        tops = tops.filter(Q(finished_at__gt=after_at) | same_moment, finished_at__gte=after_at)
    return tops.only("finished_at").order_by("finished_at", "pk")


def register() -> None:
    def rounds() -> QuerySet[ArchiveRound]:
        return ArchiveRound.objects.all() if conf.archive_after else ArchiveRound.objects.none()

    chores.also(chores.Chore("archive by age", rounds, "look_at", walk))
