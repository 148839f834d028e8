"""How many there are, told the same way by badge, header, scopes and API: exactly, or that they are very many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.cache import cache
from django.utils import formats

if TYPE_CHECKING:
    from collections.abc import Callable

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


def counted_of(key: str, rows: Callable[[], QuerySet]) -> Count:
    """As `counted`. That there are very many is remembered under `key`: it costs most, and stays true for a while."""
    if cache.get(f"approvals:many:{key}"):
        return Count(MOST, is_cut=True)
    found = counted(rows())
    if found.is_cut:
        cache.set(f"approvals:many:{key}", True, REMEMBERED)
    return found


def cut(found: int) -> Count:
    """Of rows of which no more than MOST + 1 were looked for."""
    return Count(min(found, MOST), found > MOST)
