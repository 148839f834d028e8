"""Emptying what an erased run still tells, kind by kind, in short transactions; erasing.py says when."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any  # rows of any model

from django.db import models, transaction
from django.db.models import Case, Q, QuerySet, Value, When

from runs import hooks
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.portion import Portion
from runs.models.archived import COLD
from runs.models.blob import Blob, BlobUse
from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.live_text import LiveText
from runs.models.remark import Remark
from runs.models.run import Run
from runs.models.signal import Signal
from runs.models.tombstone import ERASED

A_LOOK = 1_000  # rows that are left, of one kind


class Emptying:
    """Of one run; `at_a_time` rows at most in one transaction."""

    def __init__(self, run: Run, at_a_time: int) -> None:
        self.run = run
        self.portions = [Portion(at_a_time) for _kind in KINDS]
        self.of_others = Portion(at_a_time)

    def go_on(self, until: float) -> int:
        """All that is left, unless the time is over first; how many rows were emptied."""
        emptied = self._rows_of_others(until)
        for kind, portion in zip(KINDS, self.portions, strict=True):
            emptied += self._rows_of(kind, portion, until)
        return emptied

    def _rows_of(self, kind: Kind, portion: Portion, until: float) -> int:
        # which are left is read before any transaction, for that passes over the others
        keys = list(kind.left(self.run).order_by("pk").values_list("pk", flat=True)[:A_LOOK])
        place = 0
        while place < len(keys) and time.monotonic() < until:
            boundary("erase some")
            some = keys[place : place + portion.size]
            durably(lambda some=some: kind.empty_some(some, portion))
            portion.end()
            place += len(some)
        return place

    def _rows_of_others(self, until: float) -> int:
        emptied = 0
        while time.monotonic() < until:
            boundary("erase some of others")
            some = durably(lambda: some_of_others(self.run, self.of_others))
            self.of_others.end()
            if not some:
                break
            emptied += some
        return emptied


def is_left(run: Run) -> bool:
    """Whether a row of ours still tells; for who holds the run's lock."""
    return any(kind.left(run).exists() for kind in KINDS)


@transaction.atomic
def some_of_others(run: Run, portion: Portion) -> int:
    """Rows of other apps, by their receivers; how many were emptied."""
    answers = hooks.run_erasing.send(sender=Run, run=run, most=portion.begin(), now=clock.now())
    return sum(emptied or 0 for _receiver, emptied in answers)


# -- which rows of a kind still tell, and what is left of them


@dataclass(frozen=True, slots=True)
class Kind:
    left: Callable[[Run], QuerySet[Any]]
    empty: Callable[[QuerySet[Any], datetime], object]
    rows: type[models.Model]

    def empty_some(self, keys: list[int], portion: Portion) -> None:
        with transaction.atomic():
            portion.begin()
            self.empty(self.rows._default_manager.filter(pk__in=keys), clock.now())


FULL_CHECKPOINT = ~Q(body="") | ~Q(salt=b"") | ~Q(reason__in=("", ERASED))
FULL_ENTRY = ~Q(request="") | Q(result__isnull=False) & ~Q(result="") | ~Q(error="")


def _empty_checkpoints(rows: QuerySet[Any], now: datetime) -> None:
    rows.update(body="", salt=b"", reason=Case(When(reason="", then=Value("")), default=Value(ERASED)))


def _empty_entries(rows: QuerySet[Any], now: datetime) -> None:
    emptied = Case(When(result=None, then=Value(None)), default=Value(""))
    rows.update(request="", error="", result=emptied)


def _let_go(uses: QuerySet[BlobUse], now: datetime) -> None:
    blobs = list(uses.values_list("blob_id", flat=True))
    uses.delete()
    Blob.objects.let_go(blobs, now)


def _kinds(
    hot: type[models.Model], full: Q, empty: Callable[[QuerySet[Any], datetime], object]
) -> list[Kind]:
    """The same in the archive, where rows of a run that is erased may be, or be on their way to."""
    return [
        Kind(lambda run, rows=rows: rows._default_manager.filter(full, run=run), empty, rows)
        for rows in (hot, COLD[hot])
    ]


KINDS = (
    *_kinds(Checkpoint, FULL_CHECKPOINT, _empty_checkpoints),
    *_kinds(LedgerEntry, FULL_ENTRY, _empty_entries),
    *_kinds(Remark, ~Q(body=ERASED), lambda rows, _now: rows.update(body=ERASED)),
    *_kinds(Signal, ~Q(payload=""), lambda rows, _now: rows.update(payload="")),
    Kind(lambda run: LiveText.objects.filter(run=run), lambda rows, _now: rows.delete(), LiveText),
    Kind(lambda run: BlobUse.objects.filter(run=run), _let_go, BlobUse),
)
