"""Moving the rows of an archived run to the cold tables, some at a time; archiving.py says when.

A row is inserted there and deleted here in one transaction, under the run's lock, and triggers see to it that what goes
here stands there, column by column. Two kinds stay. The newest row of a table: SQLite would give its id again. And a
ledger entry that is referred to by what does not move: by an approval, a fan-out, or another that stays.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

from django.db import connection, models, transaction
from django.db.models import Exists, Max, OuterRef

from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.portion import Portion
from runs.models.archival import Archival
from runs.models.archived import COLD, columns
from runs.models.entry import LedgerEntry
from runs.models.run import Run

A_LOOK = 1_000  # rows that are left, of one kind


class Moving:
    """Of one run; `at_a_time` rows at most in one transaction."""

    def __init__(self, run_id: uuid.UUID, at_a_time: int) -> None:
        self.run_id = run_id
        self.portions = {hot: Portion(at_a_time) for hot in COLD}

    def go_on(self, until: float) -> None:
        """All that is left, unless the time is over first."""
        for hot, portion in self.portions.items():
            while time.monotonic() < until and (keys := left(hot, self.run_id)):
                self._move(hot, keys, portion, until)

    def _move(self, hot: type[models.Model], keys: list[int], portion: Portion, until: float) -> None:
        place = 0
        while place < len(keys) and time.monotonic() < until:
            boundary("archive some")
            some = keys[place : place + portion.size]
            durably(lambda some=some: move_some(hot, self.run_id, some, portion))
            portion.end()
            place += len(some)


def is_left(run_id: uuid.UUID) -> bool:
    """Whether a row is still to be moved; for who holds the run's lock."""
    return any(left(hot, run_id) for hot in COLD)


@transaction.atomic
def move_some(hot: type[models.Model], run_id: uuid.UUID, keys: list[int], portion: Portion) -> None:
    run, _now = Run.objects.lock(run_id)
    portion.begin()
    if not Archival.objects.under_way().filter(run=run).exists():
        return  # another has archived it meanwhile
    quote = connection.ops.quote_name
    here, there = quote(hot._meta.db_table), quote(COLD[hot]._meta.db_table)
    names, places = ", ".join(map(quote, columns(hot))), ", ".join(["%s"] * len(keys))
    locked = " FOR UPDATE" if connection.vendor == "postgresql" else ""  # against who empties it
    with connection.cursor() as cursor:
        rows = f"FROM {here} WHERE id IN ({places})"
        cursor.execute(f"INSERT INTO {there} ({names}) SELECT {names} {rows}{locked}", keys)
        cursor.execute(f"DELETE {rows}", keys)


def left(hot: type[models.Model], run_id: uuid.UUID) -> list[int]:
    """Ids of rows that are still to be moved, in the order in which they can be."""
    newest = hot._base_manager.aggregate(newest=Max("pk"))["newest"]
    if hot is LedgerEntry:
        return _movable_entries(run_id, newest)
    rows = hot._base_manager.filter(run=run_id).exclude(pk=newest)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:A_LOOK])


def _movable_entries(run_id: uuid.UUID, newest: int | None) -> list[int]:
    """The latest first: what one of them refers to was asked before it."""
    entries = LedgerEntry.objects.filter(run=run_id)
    staying = {newest}
    for reference in _references():
        refers = reference.model._base_manager.filter(**{reference.attname: OuterRef("pk")})
        staying.update(entries.filter(Exists(refers)).values_list("pk", flat=True))
    movable = []
    rows = entries.order_by("-pk").values_list("pk", "decided_by", "settles", "compensates")
    for pk, *refers_to in rows:
        if pk in staying:
            staying.update(refers_to)
        else:
            movable.append(pk)
    return movable


def _references() -> Iterable[models.ForeignKey]:
    """Columns of other tables that keep an entry where it is: the database itself looks after them."""
    for relation in LedgerEntry._meta.related_objects:
        if relation.field.db_constraint and relation.related_model is not LedgerEntry:
            yield relation.field
