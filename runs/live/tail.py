"""What changed since the last look, read from the ends of the tables that grow with each; and what calls say."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # models of any app

from django.db import connection, models

from runs.live.gaps import Horizon, Seen
from runs.live.watching import Changed
from runs.models import Checkpoint, LedgerEntry, LiveText, Signal

Row = tuple[Any, ...]  # id, then the ids of what it is about

MOST_ROWS = 5_000  # in one look at one table; the rest comes with the next
LOOK_BACK = 200  # among the last rows, ids of transactions that are still under way may be missing


@dataclass(frozen=True, slots=True)
class Source:
    """A table to which every change adds a row. `names`: word of a subject -> the field with that thing's id."""

    table: type[models.Model]
    names: Mapping[str, str]

    def rows(self) -> models.QuerySet[Any, Row]:
        return self.table._default_manager.order_by("pk").values_list("pk", *self.names.values())


_sources: list[Source] = [
    Source(Checkpoint, {"run": "run_id"}),
    Source(LedgerEntry, {"run": "run_id"}),  # a long step shows what it has asked before it commits
    Source(Signal, {"run": "run_id"}),
]


MOST_TEXTS = 2_000  # under way at a time
Mark = tuple[object, object]  # the connection, and what it says of the commits so far
Texts = dict[uuid.UUID, list[Row]]  # of each run, what tells one look from the next


def follow(*sources: Source) -> None:
    for source in sources:
        if source not in _sources:
            _sources.append(source)


class Tail:
    """Reads in one thread at a time. A look that fails leaves everything to the next."""

    def __init__(self) -> None:
        self.ends: list[tuple[Source, Seen]] = []
        self.last_rows: dict[type[models.Model], Row] = {}
        self.texts: Texts = {}
        self.has_more = False
        self.mark: Mark | None = None

    def look_if_stirred(self) -> Changed:
        """As `look`, but where nothing at all was committed since the last one, one statement that reads no table."""
        mark = _mark()
        if mark == self.mark and not self.has_more:
            return {}
        self.mark = None  # a look that fails has seen nothing
        changed = self.look()
        self.mark = mark
        return changed

    def look(self) -> Changed:
        """Of which things rows were added since the last look. The first one only finds the ends."""
        if not self.ends:
            self.texts = _texts()
            self.ends = [(source, self._end_of(source)) for source in _sources]
            return {}
        horizon = _horizon() if any(seen.missing for _source, seen in self.ends) else None
        changed: defaultdict[str, set[uuid.UUID]] = defaultdict(set)
        has_more = False
        for source, seen in self.ends:
            rows = self._rows_of(source, seen)
            has_more |= len(rows) >= MOST_ROWS
            if seen.missing:
                rows += source.rows().filter(pk__in=list(seen.missing))
            new = seen.take([row[0] for row in rows], horizon)
            for key, *things in rows:
                if key in new:
                    for word, thing in zip(source.names, things, strict=True):
                        changed[word].add(thing)
        before, self.texts = self.texts, _texts()
        said = {run for run in before.keys() | self.texts.keys() if before.get(run) != self.texts.get(run)}
        if said:
            changed["text"] |= said
        self.has_more = has_more
        return changed

    def _rows_of(self, source: Source, seen: Seen) -> list[Row]:
        """What came after the last look. In order (SQLite) that begins with the last row seen: where that one is gone,
        its id and those above it may have been given again (docs/adr/0012), and the table's end counts as new."""
        if not seen.in_order:
            return list(source.rows().filter(pk__gt=seen.last)[:MOST_ROWS])
        rows = list(source.rows().filter(pk__gte=seen.last)[: MOST_ROWS + 1])
        before = rows.pop(0) if rows and rows[0][0] == seen.last else None
        if seen.last and before != self.last_rows.get(source.table):
            rows = _last_of(source)
            seen.last = rows[0][0] - 1 if rows else 0
        if rows:
            self.last_rows[source.table] = rows[-1]
        return rows

    def _end_of(self, source: Source) -> Seen:
        rows = _last_of(source)
        seen = Seen(last=rows[0][0] - 1 if rows else 0, in_order=connection.vendor != "postgresql")
        seen.take([row[0] for row in rows])
        if rows:
            self.last_rows[source.table] = rows[-1]
        return seen


def _mark() -> Mark:
    """Twice the same means that nothing was committed between: SQLite counts, for each connection, the commits of the
    others; PostgreSQL names the transactions that a statement sees."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_current_snapshot()::text"
            if connection.vendor == "postgresql"
            else "PRAGMA data_version"
        )
        return connection.connection, cursor.fetchone()[0]


def _texts() -> Texts:
    """The one small table whose rows come, change and go: all of it."""
    found: defaultdict[uuid.UUID, list[Row]] = defaultdict(list)
    for key, run, *state in LiveText.objects.sizes(MOST_TEXTS):
        found[run].append((key, *state))
    return dict(found)


def _last_of(source: Source) -> list[Row]:
    return list(source.rows().order_by("-pk")[:LOOK_BACK])[::-1]


def _horizon() -> Horizon | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint"
            " FROM pg_current_snapshot() AS now"
        )
        return Horizon(*cursor.fetchone())
