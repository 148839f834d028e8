"""A place in the inbox's order, as an address carries it, and the page of rows that begins below it.

Open ones go by deadline, then age, then id, those without a deadline last; decided ones by the moment, the latest
first. Pages begin at a row and not at a number, so that the thousandth costs what the first does and nothing is shown
twice when rows come or go.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db.models import F, Q, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from approvals.models import Approval
    from approvals.models.inbox import ApprovalQuerySet

Row = tuple[uuid.UUID, "datetime | None", datetime]

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """`due_at` is None below the last deadline; of decided ones it is the moment of the decision."""

    due_at: datetime | None
    opened_at: datetime
    key: uuid.UUID


def text_of(row: Approval, is_decided: bool) -> str:
    return text_at(place_of(row, is_decided))


def text_at(place: Place) -> str:
    first = place.due_at
    return f"{_number(first) if first else ''}.{_number(place.opened_at)}.{place.key.hex}"


def of_text(text: str, is_decided: bool) -> Place | None:
    """Of an address typed wrong, none: that is the first page."""
    first, _dot, rest = text.partition(".")
    opened, _dot, key = rest.partition(".")
    try:
        place = Place(_moment(first) if first else None, _moment(opened), uuid.UUID(hex=key))
    except (ValueError, OverflowError):
        return None
    return None if is_decided and place.due_at is None else place


def place_of(row: Approval, is_decided: bool) -> Place:
    return Place(row.decided_at if is_decided else row.due_at, row.opened_at, row.pk)


def page(rows: ApprovalQuerySet, after: Place | None, most: int) -> list[uuid.UUID]:
    """Ids of up to `most` open rows below a place, by index."""
    if after is None:
        return list(rows.values_list("pk", flat=True)[:most])
    return [row[0] for row in read(rows, after, None, most)]


def page_of_decided(rows: ApprovalQuerySet, after: Place | None, most: int) -> list[uuid.UUID]:
    return [row[0] for row in read(rows, after, None, most, is_decided=True)]


def read(
    rows: ApprovalQuerySet, after: Place | None, end: Place | None, most: int, *, is_decided: bool = False
) -> list[Row]:
    """Up to `most` rows below `after`, and none below `end`: (id, deadline or moment of the decision, age)."""
    found: list[Row] = []
    for part in (_decided if is_decided else _open)(rows, after, end):
        keys = part.values_list("pk", "decided_at" if is_decided else "due_at", "opened_at")
        found += keys[: most - len(found)]
        if len(found) >= most:
            break
    return found


def read_all(rows: ApprovalQuerySet, most: int, *, is_decided: bool = False) -> list[Row]:
    """As `read`, of rows that are few: in one statement."""
    return list(rows.values_list("pk", "decided_at" if is_decided else "due_at", "opened_at")[:most])


def ahead(
    rows: ApprovalQuerySet, after: Place | None, length: int, *, is_decided: bool = False
) -> Place | None:
    """The place of the row that is so many below `after`; None where `rows` end before that."""
    left, age = length, Value(FIRST) if is_decided else F("opened_at")
    for part in (_decided if is_decided else _open)(rows, after, None):
        # Only what the index holds; the age of a decided one is no part of its place.
        keys = part.values_list("decided_at" if is_decided else "due_at", age, "pk")
        last = next(iter(keys[left - 1 : left]), None)
        if last is not None:
            return Place(*last)
        left -= part.order_by()[:left].count()
    return None


def _open(rows: ApprovalQuerySet, after: Place | None, end: Place | None) -> Iterator[ApprovalQuerySet]:
    """To be read one after the other: those with a deadline, then the others; each is one piece of an index."""
    if after is None or after.due_at is not None:
        dated = rows.filter(due_at__isnull=False)
        if after is not None:
            dated = dated.filter(Q(due_at__gt=after.due_at) | _below(after), due_at__gte=after.due_at)
        if end is not None and end.due_at is not None:
            dated = dated.filter(Q(due_at__lt=end.due_at) | ~_below(end), due_at__lte=end.due_at)
        yield dated
    if end is None or end.due_at is None:
        undated = rows.filter(due_at=None)
        if after is not None and after.due_at is None:
            undated = undated.filter(_below(after), opened_at__gte=after.opened_at)
        if end is not None:
            undated = undated.filter(~_below(end), opened_at__lte=end.opened_at)
        yield undated


def _below(place: Place) -> Q:
    """Among rows of one deadline, or without."""
    return Q(opened_at__gt=place.opened_at) | Q(opened_at=place.opened_at, pk__gt=place.key)


def _decided(rows: ApprovalQuerySet, after: Place | None, end: Place | None) -> Iterator[ApprovalQuerySet]:
    if after is not None:
        same = Q(decided_at=after.due_at, pk__lt=after.key)
        rows = rows.filter(Q(decided_at__lt=after.due_at) | same, decided_at__lte=after.due_at)
    if end is not None:
        same = Q(decided_at=end.due_at, pk__gte=end.key)
        rows = rows.filter(Q(decided_at__gt=end.due_at) | same, decided_at__gte=end.due_at)
    yield rows


def is_below(row: Row, place: Place, is_decided: bool) -> bool:
    key, moment, opened_at = row
    if is_decided:
        return (moment, key) < (place.due_at, place.key)
    return (moment or _NEVER, opened_at, key) > (place.due_at or _NEVER, place.opened_at, place.key)


def in_order(row: Approval) -> tuple[datetime, datetime, uuid.UUID]:
    return row.due_at or _NEVER, row.opened_at, row.pk


def _number(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    length = moment - FIRST
    return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds


def _moment(text: str) -> datetime:
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 20:
        raise ValueError(text)
    seconds, rest = divmod(int(text), 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
