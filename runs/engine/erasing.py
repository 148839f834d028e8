"""`Run.erase`: a family of ended runs loses what it was about, in small transactions that anybody can go on with.

The tombstone of the top comes first and is the intent: from then on no run of the family comes back, nothing is added
to it, and triggers let pass what empties its rows (runs/engine/passages.py). Then each run of the family gets its own
tombstone, is emptied some rows at a time, and is sealed: its tombstone takes a digest over all that remains. The top
is sealed last. Who is killed on the way leaves `go_on_at` on the top's tombstone, and a chore goes on.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from runs import chores
from runs.core import codec
from runs.core.chain import moment
from runs.core.words import storable_text
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.emptying import Emptying, is_left, some_of_others
from runs.engine.portion import Portion
from runs.engine.telling import tell_all
from runs.errors import Conflict, told
from runs.models.entry import IN_DOUBT, LedgerEntry
from runs.models.run import Run
from runs.models.statuses import LIVE
from runs.models.tombstone import Tombstone
from runs.models.untold_end import UntoldEnd

FORMAT = 1
AT_A_TIME = 250  # rows at most that one transaction empties
LONGEST_SECONDS = 20.0  # of one call; well below a chore's lease


def erase(run: Run, reason: str, by: str) -> Tombstone:
    """The verb; its docstring is at Run.erase."""
    top = run.root
    for parent in set(_untold(top).values_list("parent", flat=True)):
        tell_all(parent)
    durably(lambda: _begin(top, reason, by))
    boundary("erasure begun")
    go_on(top)
    return Tombstone.objects.get(run=top)


def go_on(top: uuid.UUID) -> None:
    """As far as a chore's time goes; due again at once where something is left, and never where it is done."""
    until = time.monotonic() + LONGEST_SECONDS
    stone = Tombstone.objects.under_way().filter(run=top).first()
    if stone is None:
        return
    after = uuid.UUID(int=0)
    while (member := _next_of_family(top, after)) is not None:
        if not _erase_one(member, stone, until):
            durably(
                lambda: Tombstone.objects.filter(pk=stone.pk, erased_at=None).update(go_on_at=clock.now())
            )
            return
        after = member
    if not _erase_one(top, stone, until):
        durably(lambda: Tombstone.objects.filter(pk=stone.pk, erased_at=None).update(go_on_at=clock.now()))


@transaction.atomic
def _begin(top_id: uuid.UUID, reason: str, by: str) -> None:
    top, now = Run.objects.lock(top_id)
    if Tombstone.objects.filter(run=top).exists():
        return
    if top.kept:
        raise Conflict(
            told(_("Run %(run)s is kept, and so is its family; release it first."), run=top.short_id)
        )
    family = Run.objects.filter(root=top.pk)
    not_done = Q(status__in=LIVE) | Q(cascade_at__isnull=False) | Q(untold_end__isnull=False)
    if (alive := family.filter(not_done).first()) is not None:
        raise Conflict(
            told(
                _("Run %(run)s of the family is %(word)s, and not done with; only what has ended is erased."),
                run=alive.short_id,
                word=alive.status,
            )
        )
    doubted = LedgerEntry.objects.filter(run__root=top.pk, status=IN_DOUBT).select_related("run").first()
    if doubted is not None:
        raise Conflict(
            told(
                _(
                    "Run %(run)s: whether %(key)s happened is in doubt; settle it first, for nobody could "
                    "afterwards."
                ),
                run=doubted.run.short_id,
                key=doubted.key,
            )
        )
    Tombstone.objects.create(
        run=top,
        by=storable_text(by)[:200],
        reason=storable_text(reason),
        at=now,
        head=top.head,
        go_on_at=now + chores.LEASE,
    )


def _untold(top: uuid.UUID) -> QuerySet[UntoldEnd]:
    return UntoldEnd.objects.filter(child__root=top)


def _next_of_family(top: uuid.UUID, after: uuid.UUID) -> uuid.UUID | None:
    left = Run.objects.filter(root=top, pk__gt=after).exclude(pk=top)
    return left.filter(tombstone__erased_at=None).order_by("pk").values_list("pk", flat=True).first()


def _erase_one(run_id: uuid.UUID, stone: Tombstone, until: float) -> bool:
    """One run of the family, whole; False when the time was over first."""
    if run_id != stone.run_id:
        durably(lambda: _mark(run_id, stone))
    run = Run.objects.get(pk=run_id)
    emptying = Emptying(run, AT_A_TIME)
    while time.monotonic() < until:
        if not emptying.go_on(until) and durably(lambda: _seal(run)):
            boundary("erased")
            return True
    return False


@transaction.atomic
def _mark(run_id: uuid.UUID, stone: Tombstone) -> None:
    run, _now = Run.objects.lock(run_id)
    said = {"by": stone.by, "reason": stone.reason, "at": stone.at, "head": run.head}
    Tombstone.objects.get_or_create(run=run, defaults=said)


def _seal(run: Run) -> bool:
    """Nothing is left: its tombstone says so, and holds what remains. False when a late row came first.

    What remains may be long, and is read before the lock: of an erased run no row changes any more, and that none was
    added is seen by their number.
    """
    unlocked = Run.objects.get(pk=run.pk)
    many, rest = _many(unlocked), rest_of(unlocked)
    boundary("erasure seals")
    with transaction.atomic():
        run, now = Run.objects.lock(run.pk)  # waits for whoever still adds a row
        if is_left(run) or _many(run) != many:
            return False
        if some_of_others(run, Portion(AT_A_TIME)):
            return False
        Run.objects.filter(pk=run.pk).update(labels="{}", error="")
        sealed = {"rest": rest, "erased_at": now, "go_on_at": None}
        Tombstone.objects.under_way().filter(run=run).update(**sealed)
    return True


def _many(run: Run) -> tuple[str, int, int]:
    return run.head, run.checkpoints.count(), run.entries.count()


def rest_of(run: Run) -> str:
    """The digest of all that remains of an erased run: docs/audit.md says over what."""
    digest = hashlib.sha256()
    stone = Tombstone.objects.get(run=run)
    words = [
        FORMAT, str(run.pk), run.graph, run.version, run.status, run.head, moment(run.created_at),
        moment(run.finished_at), stone.by, stone.reason, moment(stone.at),
    ]  # fmt: skip
    digest.update(codec.encode(words).encode())
    links = run.checkpoints.order_by("seq").values_list(
        "seq", "kind", "step", "node", "status", "version", "attempt", "fence", "actor", "reason", "at", "entries",
        "body_digest", "digest",
    )  # fmt: skip
    for link in links.iterator(chunk_size=2_000):
        digest.update(_line(link))
    entries = run.entries.order_by("pk").values_list(
        "step", "key", "kind", "name", "status", "request_digest", "idempotency_key", "answered_by", "answered_at",
        "approved_digest", "approval_head",
    )  # fmt: skip
    for entry in entries.iterator(chunk_size=2_000):
        digest.update(_line(entry))
    return digest.hexdigest()


def _line(row: tuple[object, ...]) -> bytes:
    plain = [moment(value) if isinstance(value, datetime) else value for value in row]
    return f"\n{codec.encode(plain)}".encode()


def register() -> None:
    """The chore that goes on with what was begun."""
    begun = lambda: Tombstone.objects.filter(go_on_at__isnull=False)  # noqa: E731

    def do(pk: int) -> None:
        go_on(Tombstone.objects.values_list("run_id", flat=True).get(pk=pk))

    chores.also(chores.Chore("erasures", begun, "go_on_at", do))
