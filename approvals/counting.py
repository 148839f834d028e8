"""How many there are, told the same way by badge, header, scopes and API: exactly, or that they are very many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.cache import caches
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.utils import formats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.models import QuerySet

MOST = 1_000  # nobody reads further, and the database need not count further either
REMEMBERED = 30  # seconds


@dataclass(frozen=True, slots=True)
class Count:
    """`number` rows, or more than that where `is_cut`."""

    number: int
    is_cut: bool = False

    def __str__(self) -> str:
        text = str(formats.number_format(self.number, force_grouping=True))
        return f"{text}+" if self.is_cut else text

    def __bool__(self) -> bool:
        return self.number > 0


def counted(rows: QuerySet) -> Count:
    """One statement, which ends soon however many rows there are, if they come in an order that an index has."""
    return cut(rows[: MOST + 1].count())


def counted_together(lists: Mapping[str, QuerySet]) -> dict[str, Count]:
    """As `counted` of each, in one statement."""
    parts: list[str] = []
    given: list[object] = []
    for rows in lists.values():
        try:
            statement, values = rows.values("pk")[: MOST + 1].query.sql_with_params()
        except EmptyResultSet:  # a list of nothing has no statement
            parts.append("0")
            continue
        parts.append(f"(SELECT COUNT(*) FROM ({statement}) AS counted)")
        given += values
    if not parts:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", given)
        return {name: cut(found) for name, found in zip(lists, cursor.fetchone(), strict=True)}


def many_remembered(key: str) -> Count | None:
    """That there were very many a moment ago under `key`; None where it is to be counted."""
    return Count(MOST, is_cut=True) if caches["process"].get(f"approvals:many:{key}") else None


def remember_many(key: str, found: Count) -> None:
    if found.is_cut:
        caches["process"].set(f"approvals:many:{key}", True, REMEMBERED)


def counted_of(key: str, rows: Callable[[], QuerySet]) -> Count:
    """As `counted`. That there are very many is remembered under `key`: it costs most, and stays true for a while."""
    known = many_remembered(key)
    if known is not None:
        return known
    found = counted(rows())
    remember_many(key, found)
    return found


def cut(found: int) -> Count:
    """Of rows of which no more than MOST + 1 were looked for."""
    return Count(min(found, MOST), found > MOST)
