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

from django.db.models import Q

if TYPE_CHECKING:
    from approvals.models import Approval
    from approvals.models.inbox import ApprovalQuerySet

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """`due_at` is None below the last deadline; of decided ones it is the moment of the decision."""

    due_at: datetime | None
    opened_at: datetime
    key: uuid.UUID


def text_of(row: Approval, is_decided: bool) -> str:
    first = row.decided_at if is_decided else row.due_at
    return f"{_number(first) if first else ''}.{_number(row.opened_at)}.{row.pk.hex}"


def of_text(text: str, is_decided: bool) -> Place | None:
    """Of an address typed wrong, none: that is the first page."""
    first, _dot, rest = text.partition(".")
    opened, _dot, key = rest.partition(".")
    try:
        place = Place(_moment(first) if first else None, _moment(opened), uuid.UUID(hex=key))
    except (ValueError, OverflowError):
        return None
    return None if is_decided and place.due_at is None else place


def page(rows: ApprovalQuerySet, after: Place | None, most: int) -> list[uuid.UUID]:
    """Ids of up to `most` open rows below a place: first of those with a deadline, then of the others, by index."""
    keys = rows.values_list("pk", flat=True)
    if after is None:
        return list(keys[:most])
    below = Q(opened_at__gt=after.opened_at) | Q(opened_at=after.opened_at, pk__gt=after.key)
    if after.due_at is None:
        return list(keys.filter(below, due_at=None, opened_at__gte=after.opened_at)[:most])
    dated = keys.filter(Q(due_at__gt=after.due_at) | below, due_at__gte=after.due_at)
    found = list(dated[:most])
    return found if len(found) == most else found + list(keys.filter(due_at=None)[: most - len(found)])


def page_of_decided(rows: ApprovalQuerySet, after: Place | None, most: int) -> list[uuid.UUID]:
    if after is not None:
        same = Q(decided_at=after.due_at, pk__lt=after.key)
        rows = rows.filter(Q(decided_at__lt=after.due_at) | same, decided_at__lte=after.due_at)
    return list(rows.values_list("pk", flat=True)[:most])


def in_order(row: Approval) -> tuple[datetime, datetime, uuid.UUID]:
    return row.due_at or _NEVER, row.opened_at, row.pk


def _number(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    length = moment - _FIRST
    return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds


def _moment(text: str) -> datetime:
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 20:
        raise ValueError(text)
    seconds, rest = divmod(int(text), 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
