"""`Run.archive`: the rows of a family of ended runs go to the cold tables, in small transactions.

As an erasure does it (runs/engine/erasing.py): the Archival of the top comes first and is the intent. From then on no
run of the family comes back, and triggers let pass what moves its rows (runs/engine/passages.py). Then each run of the
family gets its own, its rows are moved some at a time (runs/engine/moving.py), and once nothing is left it is archived.
The top comes last. Who is killed on the way leaves `go_on_at` on the top's row, and a chore goes on.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from runs import chores
from runs.core.words import storable_text
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.moving import Moving, is_left
from runs.engine.telling import tell_all
from runs.errors import Conflict, told
from runs.models.archival import Archival
from runs.models.entry import IN_DOUBT, LedgerEntry
from runs.models.run import Run
from runs.models.statuses import LIVE
from runs.models.tombstone import Tombstone
from runs.models.untold_end import UntoldEnd

AT_A_TIME = 250  # rows at most that one transaction moves
LONGEST_SECONDS = 20.0  # of one call; well below a chore's lease
LATER = timedelta(hours=1)  # after one of the family was found that cannot be moved yet


def archive(run: Run, reason: str, by: str, ended_by: datetime | None = None) -> Archival:
    """The verb; its docstring is at Run.archive."""
    top = run.root
    for parent in set(UntoldEnd.objects.filter(child__root=top).values_list("parent", flat=True)):
        tell_all(parent)
    durably(lambda: begin(top, reason, by, ended_by))
    boundary("archive begun")
    go_on(top)
    return Archival.objects.get(run=top)


@transaction.atomic
def begin(
    top_id: uuid.UUID, reason: str, by: str, ended_by: datetime | None = None, due: bool = False
) -> None:
    """The intent, under the lock of the top. Raises Conflict where the family may not be archived.

    `ended_by`: nor where a run of it ended later than this. `due`: a chore goes on with it at once, and not the caller.
    """
    top, now = Run.objects.lock(top_id)
    if Archival.objects.filter(run=top).exists():
        return
    _refuse(top, ended_by)
    said = {"by": storable_text(by)[:200], "reason": storable_text(reason), "at": now, "head": top.head}
    Archival.objects.create(run=top, go_on_at=now if due else now + chores.LEASE, **said)
    Run.objects.filter(pk=top.pk).update(archived_at=now)


def go_on(top: uuid.UUID) -> bool:
    """As far as a chore's time goes; whether that was over first, so that it is due again at once."""
    until = time.monotonic() + LONGEST_SECONDS
    archival = Archival.objects.under_way().filter(run=top).first()
    if archival is None:
        return False
    after, all_moved = uuid.UUID(int=0), True
    while (member := _next_of_family(top, after)) is not None and time.monotonic() < until:
        all_moved &= _archive_one(member, archival, until)
        after = member
    if member is None and all_moved and _archive_one(top, archival, until):
        return False
    is_over = time.monotonic() >= until
    # else one has not ended, or is in doubt: it began anew at the moment in which the intent was written
    due = clock.now() + (timedelta() if is_over else LATER)
    durably(lambda: Archival.objects.under_way().filter(pk=archival.pk).update(go_on_at=due))
    return is_over


def _refuse(top: Run, ended_by: datetime | None) -> None:
    """Raises Conflict, naming the run of the family that keeps it from being archived."""
    family = Run.objects.filter(root=top.pk)
    if Tombstone.objects.filter(run=top).exists():
        raise Conflict(
            told(_("Run %(run)s is erased, or being erased; what remains stays."), run=top.short_id)
        )
    if top.kept:
        raise Conflict(
            told(_("Run %(run)s is kept, and so is its family; release it first."), run=top.short_id)
        )
    if (alive := family.filter(_not_done()).first()) is not None:
        said = _("Run %(run)s of the family is %(word)s, and not done with; only what has ended is archived.")
        raise Conflict(told(said, run=alive.short_id, word=alive.status))
    if (failed := family.dead_letters().first()) is not None:
        said = _("Run %(run)s of the family has failed and may be repaired; repair or close it first.")
        raise Conflict(told(said, run=failed.short_id))
    if (doubted := _in_doubt(run__root=top.pk).select_related("run").first()) is not None:
        said = _("Run %(run)s: whether %(key)s happened is in doubt; settle it first.")
        raise Conflict(told(said, run=doubted.run.short_id, key=doubted.key))
    if ended_by is not None and (late := family.filter(finished_at__gt=ended_by).first()) is not None:
        raise Conflict(told(_("Run %(run)s of the family has ended later."), run=late.short_id))


def _not_done() -> Q:
    return Q(status__in=LIVE) | Q(cascade_at__isnull=False) | Q(untold_end__isnull=False)


def _in_doubt(**of: object) -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(status=IN_DOUBT, **of)


def _next_of_family(top: uuid.UUID, after: uuid.UUID) -> uuid.UUID | None:
    left = Run.objects.filter(root=top, pk__gt=after).exclude(pk=top)
    return left.filter(archival__archived_at=None).order_by("pk").values_list("pk", flat=True).first()


def _archive_one(run_id: uuid.UUID, top: Archival, until: float) -> bool:
    """One run of the family, whole; False when the time was over first, or it cannot be moved yet."""
    if run_id != top.run_id and not durably(lambda: _mark(run_id, top)):
        return False
    moving = Moving(run_id, AT_A_TIME)
    while time.monotonic() < until:
        moving.go_on(until)
        if durably(lambda: _close(run_id)):
            boundary("archived")
            return True
    return False


@transaction.atomic
def _mark(run_id: uuid.UUID, top: Archival) -> bool:
    """The run's own row, under its lock; False where it lives, or is in doubt."""
    run, now = Run.objects.lock(run_id)
    if not run.ended or _in_doubt(run=run).exists():
        return False
    said = {"by": top.by, "reason": top.reason, "at": top.at, "head": run.head}
    _archival, is_new = Archival.objects.get_or_create(run=run, defaults=said)
    if is_new:
        Run.objects.filter(pk=run.pk).update(archived_at=now)
    return True


@transaction.atomic
def _close(run_id: uuid.UUID) -> bool:
    """Nothing is left: its row says so. False when a late row came first."""
    run, now = Run.objects.lock(run_id)
    if is_left(run.pk):
        return False
    Archival.objects.under_way().filter(run=run).update(archived_at=now, go_on_at=None)
    return True


def register() -> None:
    """The chore that goes on with what was begun."""
    begun = lambda: Archival.objects.filter(go_on_at__isnull=False)  # noqa: E731

    def do(pk: int) -> None:
        go_on(Archival.objects.values_list("run_id", flat=True).get(pk=pk))

    chores.also(chores.Chore("archives", begun, "go_on_at", do))
