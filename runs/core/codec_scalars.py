"""Values with a typed form and nothing inside them: how each is taken apart into plain parts and put together."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any  # each form has its own value type
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic_core import TzInfo

from runs.core.codec_refs import BlobRef, SecretRef
from runs.core.codec_tree import Plain, Refusal

Parts = dict[str, Plain]

NOT_A_NUMBER = "is {}: NaN and infinity are not stored; use None or a string"


@dataclass(frozen=True)
class Scalar:
    """`name` marks the stored form; `apart` gives its parts; `together` may raise any ValueError or LookupError."""

    name: str
    apart: Callable[[Any], Parts]
    together: Callable[[Parts], Any]


def text_apart(value: str) -> Parts:
    """For a text that JSON would change: two lone surrogates side by side would come back as one character."""
    return {"v": b64encode(value.encode("utf-8", "surrogatepass")).decode()}


def text_together(parts: Parts) -> str:
    return b64decode(parts["v"], validate=True).decode("utf-8", "surrogatepass")


def integer_apart(value: int) -> Parts:
    return {"v": hex(value)}  # the interpreter limits the length of decimal digits only


def integer_together(parts: Parts) -> int:
    return int(parts["v"], 16)


def bytes_apart(value: bytes) -> Parts:
    return {"v": b64encode(value).decode()}


def bytes_together(parts: Parts) -> bytes:
    return b64decode(parts["v"], validate=True)


def decimal_apart(value: Decimal) -> Parts:
    if not value.is_finite():
        raise Refusal(NOT_A_NUMBER.format(value))
    return {"v": str(value)}


def moment_apart(value: datetime | time) -> Parts:
    parts: Parts = {"v": value.replace(tzinfo=None).isoformat()}
    if value.fold:
        parts["fold"] = 1
    return parts | zone_apart(value.tzinfo)


def datetime_together(parts: Parts) -> datetime:
    moment = datetime.fromisoformat(parts["v"])
    return moment.replace(tzinfo=zone_together(parts), fold=parts.get("fold", 0))


def time_together(parts: Parts) -> time:
    moment = time.fromisoformat(parts["v"])
    return moment.replace(tzinfo=zone_together(parts), fold=parts.get("fold", 0))


def zone_apart(zone: tzinfo | None) -> Parts:
    """`utc`, or `zone` (its key), or `offset` (microseconds) with its `name` if it has one, or `tzinfo` (the seconds
    of pydantic's own class, which its validated datetimes carry)."""
    if zone is None:
        return {}
    if zone is UTC:
        return {"utc": True}
    if type(zone) is ZoneInfo and zone.key:
        return {"zone": zone.key}
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()
        return {"offset": offset // timedelta(microseconds=1)} | ({"name": name[0]} if name else {})
    if type(zone) is TzInfo:
        return {"tzinfo": int(zone.utcoffset(None).total_seconds())}
    raise Refusal(
        f"has a time zone of type {type(zone).__name__}; use zoneinfo.ZoneInfo or datetime.timezone"
    )


def zone_together(parts: Parts) -> tzinfo | None:
    if "utc" in parts:
        return UTC
    if "zone" in parts:
        return ZoneInfo(parts["zone"])
    if "offset" in parts:
        offset = timedelta(microseconds=parts["offset"])
        return timezone(offset, parts["name"]) if "name" in parts else timezone(offset)
    return TzInfo(parts["tzinfo"]) if "tzinfo" in parts else None


def timedelta_apart(value: timedelta) -> Parts:
    return {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}


TEXT = Scalar("str", text_apart, text_together)
INTEGER = Scalar("int", integer_apart, integer_together)

SCALARS: dict[type, Scalar] = {
    bytes: Scalar("bytes", bytes_apart, bytes_together),
    datetime: Scalar("datetime", moment_apart, datetime_together),
    date: Scalar(
        "date", lambda value: {"v": value.isoformat()}, lambda parts: date.fromisoformat(parts["v"])
    ),
    time: Scalar("time", moment_apart, time_together),
    timedelta: Scalar("timedelta", timedelta_apart, lambda parts: timedelta(**parts)),
    Decimal: Scalar("decimal", decimal_apart, lambda parts: Decimal(parts["v"])),
    UUID: Scalar("uuid", lambda value: {"v": str(value)}, lambda parts: UUID(parts["v"])),
    BlobRef: Scalar("blob", asdict, lambda parts: BlobRef(**parts)),
    SecretRef: Scalar("secret", lambda value: {"v": value.name}, lambda parts: SecretRef(parts["v"])),
}
