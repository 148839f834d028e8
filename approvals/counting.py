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
LONG = 250  # the same of a list for which each row on the way has to be asked whether it belongs there
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


@dataclass(frozen=True, slots=True)
class Countable:
    """Rows, to how many they are counted, and whether they are only the first part of what is meant."""

    rows: QuerySet
    most: int
    is_part: bool = False

    def told(self, found: int) -> Count:
        return Count(min(found, self.most), self.is_part or found > self.most)


def counted(rows: QuerySet, most: int | None = None) -> Count:
    """One statement, which ends soon however many rows there are, if they come in an order that an index has."""
    most = MOST if most is None else most
    return cut(rows[: most + 1].count(), most)


def counted_together(lists: Mapping[str, Countable]) -> dict[str, Count]:
    """As `counted` of each, to its own limit, in one statement."""
    parts: list[str] = []
    given: list[object] = []
    for each in lists.values():
        try:
            statement, values = each.rows.values("pk")[: each.most + 1].query.sql_with_params()
        except EmptyResultSet:  # a list of nothing has no statement
            parts.append("0")
            continue
        parts.append(f"(SELECT COUNT(*) FROM ({statement}) AS counted)")
        given += values
    if not parts:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", given)
        numbers = zip(lists.items(), cursor.fetchone(), strict=True)
        return {name: each.told(found) for (name, each), found in numbers}


def many_remembered(key: str) -> Count | None:
    """That there were very many a moment ago under `key`; None where it is to be counted."""
    many = caches["process"].get(f"approvals:many:{key}")
    return Count(many, is_cut=True) if many is not None else None  # none may be among the first of very many


def remember_many(key: str, found: Count) -> None:
    if found.is_cut:
        caches["process"].set(f"approvals:many:{key}", found.number, REMEMBERED)


def counted_of(key: str, rows: Callable[[], Countable]) -> Count:
    """As `counted`. That there are very many is remembered under `key`: it costs most, and stays true for a while."""
    known = many_remembered(key)
    if known is not None:
        return known
    each = rows()
    found = each.told(each.rows[: each.most + 1].count())
    remember_many(key, found)
    return found


def cut(found: int, most: int | None = None) -> Count:
    """Of rows of which no more than `most` + 1 were looked for."""
    most = MOST if most is None else most
    return Count(min(found, most), found > most)
