"""The values that the codec must keep, and the equality by which it is judged."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from math import copysign
from zoneinfo import ZoneInfo

import pytest
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr
from pydantic_core import TzInfo

from runs.core import codec
from runs.core.codec import BlobRef, SecretRef, storable
from runs.core.codec_text import survives
from runs.core.errors import CodecError


@storable
class Colour(Enum):
    RED = "red"
    NONE = None


@storable
class Word(StrEnum):
    YES = "yes"
    NO = "no"


@storable
class Level(IntEnum):
    LOW = 1
    HIGH = 2**40


@storable
class Rights(Flag):
    READ = 1
    WRITE = 2


@storable
@dataclasses.dataclass
class Point:
    x: object
    y: object = 0


@storable
@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    name: str
    number: int


@storable
class Note(BaseModel):
    text: object
    tags: list[object] = []


@storable
class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    kept: object = None
    _seen: int = PrivateAttr(default=0)


ZONES = [
    None,
    UTC,
    timezone(timedelta(hours=2)),
    timezone(timedelta(minutes=-210, seconds=7), "odd"),
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("UTC"),
    TzInfo(0),
    TzInfo(-5400),
]

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=8) | st.sampled_from(
    [
        "",
        "$",
        "a\x00b",
        "\ud800",
        "\udc00x",
        "\ud83d\ude00",
        "\ud800\udc00",
        "😀",
        "é\u2028\x7f",
        "a/b~c",
        '"\\',
    ]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers() | st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**200, -(10**500)])
PLAIN_TEXTS = TEXTS.filter(survives)
PLAIN_LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | PLAIN_TEXTS

MOMENTS = st.builds(
    lambda moment, zone, fold: moment.replace(tzinfo=zone, fold=fold),
    st.datetimes(),
    st.sampled_from(ZONES),
    st.sampled_from([0, 1]),
)
TIMES = st.builds(
    lambda moment, zone, fold: moment.replace(tzinfo=zone, fold=fold),
    st.times(),
    st.sampled_from(ZONES),
    st.sampled_from([0, 1]),
)
HASHABLE = (
    PLAIN_LEAVES
    | TEXTS
    | INTEGERS
    | MOMENTS
    | TIMES
    | st.dates()
    | st.timedeltas()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.binary(max_size=12)
    | st.sampled_from([*Colour, *Word, *Level, Rights.READ, Rights.READ | Rights.WRITE, Rights(0)])
    | st.builds(BlobRef, st.just("ab" * 32), st.integers(0, 2**40), st.just("text/plain"))
    | st.builds(SecretRef, st.sampled_from(["API_KEY", "PASSWORD"]))
    | st.builds(Place, TEXTS, st.integers(0, 9))
)


def opened(extra: dict, seen: int) -> Open:
    instance = Open(**extra)
    instance._seen = seen
    return instance


def containers(inner: st.SearchStrategy) -> st.SearchStrategy:
    return (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.builds(Point, inner, inner)
        | st.builds(Note, text=inner, tags=st.lists(inner, max_size=2))
        | st.builds(Note, text=inner)
        | st.builds(
            opened, st.dictionaries(st.sampled_from(["kept", "more", "a b"]), inner), st.integers(0, 3)
        )
    )


VALUES = st.recursive(
    HASHABLE | st.sets(HASHABLE, max_size=4) | st.frozensets(HASHABLE, max_size=4), containers, max_leaves=12
)
TREES = st.recursive(
    PLAIN_LEAVES,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(PLAIN_TEXTS.filter(lambda key: key != "$"), inner, max_size=5)
    ),
    max_leaves=15,
)


def exactly(a: object, b: object) -> bool:
    """Equal in value and in type, all the way down, with the order of keys, zone and fold."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return exactly(list(a.items()), list(b.items()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(exactly, a, b))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(exactly(x, y) for y in b) for x in a)
    if isinstance(a, float):
        return a == b and copysign(1, a) == copysign(1, b)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, (datetime, time)):
        naive = a.replace(tzinfo=None) == b.replace(tzinfo=None)
        return naive and a.fold == b.fold and exactly_zone(a.tzinfo, b.tzinfo)
    if isinstance(a, BaseModel):
        return a.model_fields_set == b.model_fields_set and all(
            exactly(getattr(a, part), getattr(b, part))
            for part in ("__dict__", "__pydantic_extra__", "__pydantic_private__")
        )
    if dataclasses.is_dataclass(a):
        return all(exactly(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return a == b


def exactly_zone(a: object, b: object) -> bool:
    return type(a) is type(b) and repr(a) == repr(b) and (a is UTC) == (b is UTC)


def refusal(value):
    with pytest.raises(CodecError) as caught:
        codec.flatten(value)
    return caught.value
