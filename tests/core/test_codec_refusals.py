"""What the codec refuses to write or to read: in words, with the path, and with nothing imported."""

from __future__ import annotations

import collections
import dataclasses
import enum
import os
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

import pytest

from runs.core import codec
from runs.core.errors import CodecError
from tests.core.values import (
    Note,
    Open,
    Point,
    refusal,
)


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity")]
)
def test_nan_and_infinity_are_refused_naming_the_path(number):
    """D2"""
    error = refusal({"findings": {"a b": [0, 1, 2, number]}})
    assert error.path == "$.findings['a b'][3]"
    assert "NaN and infinity" in str(error)
    assert str(error).startswith(error.path)


class Row(collections.namedtuple("Row", "a b")):
    pass


class Text(str):
    pass


@dataclasses.dataclass
class Unknown:
    a: int


class UnknownWord(enum.StrEnum):
    A = "a"


class Dateutil(tzinfo):
    def utcoffset(self, moment):
        return timedelta(0)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (collections.OrderedDict(a=1), "dict(...)"),
        (collections.defaultdict(list), "dict(...)"),
        (collections.deque([1]), "list(...)"),
        (Row(1, 2), "tuple(...)"),
        (Text("a"), "str(...)"),
        (bytearray(b"a"), "bytes(...)"),
        (Unknown(1), "@storable"),
        (UnknownWord.A, "@storable"),
        (object(), "@storable"),
        (Unknown, "no stored form"),
        (1j, "no stored form"),
        (datetime(2024, 1, 1, tzinfo=Dateutil()), "zoneinfo.ZoneInfo"),
    ],
    ids=lambda value: ascii(value).split(" at 0x")[0][:40],
)
def test_what_has_no_form_is_refused_with_path_and_remedy(value, remedy):
    for holder, path in (
        ({"x": [value]}, "$.x[0]"),
        ((1, {"y": value}), "$[1].y"),
        (Note(text=1, tags=[value]), "$.tags[0]"),
        (Point(value), "$.x"),
        ({1: value}, "$[1]"),
        (Open(more=value), "$.more"),
    ):
        error = refusal(holder)
        assert error.path == path
        assert remedy in error.reason


def test_a_key_or_a_member_of_a_set_that_has_no_form_is_refused():
    assert refusal({"a": {Text("key"): 1}}).path == "$.a[Text]"
    assert refusal({"a": {1.5, Text("key")}}).path == "$.a[Text]"


def test_a_value_that_contains_itself_is_refused_where_the_circle_closes():
    ring = {"a": []}
    ring["a"].append({"back": ring})
    point = Point(1)
    point.x = point
    pair = ([],)
    pair[0].append(pair)
    assert (
        str(refusal({"ring": ring})) == "$.ring.a[0].back: contains itself; store an id instead of the object"
    )
    assert refusal([point]).path == "$[0].x"
    assert "contains itself" in refusal(pair).reason


def nested(levels, wrap):
    value = "core"
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    ("wrap", "levels"),
    [
        (lambda v: [v], 200),
        (lambda v: {"a": v}, 200),
        (lambda v: (v,), 100),
        (lambda v: Point(v), 99),
        (lambda v: {1: v}, 66),
        (lambda v: frozenset({v}), 100),
    ],
)
def test_depth_is_limited_and_whatever_is_written_can_be_read(wrap, levels):
    allowed = nested(levels, wrap)
    text = codec.dumps(allowed)
    assert codec.dumps(codec.loads(text)) == text
    assert "nested deeper than 200" in refusal(nested(levels + 2, wrap)).reason
    assert "nested deeper than 200" in refusal(nested(900, wrap)).reason


def test_a_shared_part_is_no_circle():
    part = [1]
    assert codec.flatten([part, part]) == [[1], [1]]


# Reading what somebody else wrote.


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "model", "c": "os:system", "v": {"command": "true"}},
        {"$": "dataclass", "c": "subprocess:Popen", "v": {"args": "true"}},
        {"$": "enum", "c": "http:HTTPStatus", "v": "OK"},
        {"$": "model", "c": "this:Zen", "v": {}},
        {"$": "dataclass", "c": "tests.core.values:Moved", "v": {}},
        {"$": "model", "c": "tests.core.values:Point", "v": {"x": 1, "y": 2}},
        {"$": "dataclass", "c": "tests.core.values:Point", "v": {"x": 1, "z": 2}},
        {"$": "dataclass", "c": "tests.core.values:Point", "v": {"y": 2}},
        {"$": "model", "c": "tests.core.values:Note", "v": {"tags": []}},
        {"$": "model", "c": "tests.core.values:Note", "v": {"text": 1, "tags": []}, "extra": {"more": 1}},
        {"$": "model", "c": "tests.core.values:Open", "v": {"kept": 1}, "private": {"_gone": 1}},
        {"$": "enum", "c": "tests.core.values:Colour", "v": "BLUE"},
        {"$": "enum", "c": "tests.core.values:Colour", "v": ["RED"]},
        {"$": "enum", "c": ["tests.core.values:Colour"], "v": "RED"},
        {"$": "eval", "v": "1"},
        {"$": ["int"], "v": "0x1"},
        {"$": "int", "v": "no number"},
        {"$": "int"},
        {"$": "datetime", "v": "yesterday"},
        {"$": "datetime", "v": "2024-01-01T00:00:00", "zone": "../../etc/passwd"},
        {"$": "datetime", "v": "2024-01-01T00:00:00", "zone": "No/Where"},
        {"$": "decimal", "v": "abc"},
        {"$": "uuid", "v": "1"},
        {"$": "bytes", "v": "%"},
        {"$": "set", "v": [[1]]},
        {"$": "dict", "v": [[[1], 2]]},
        {"$": "dict", "v": [1]},
        {"$": "tuple", "v": None},
        {"$": "timedelta", "weeks": "x"},
        {"$": "blob", "sha256": "a"},
        (1,),
    ],
    ids=repr,
)
def test_a_stored_value_that_cannot_be_trusted_is_a_typed_error_and_nothing_is_imported_or_called(
    tree, tmp_path, monkeypatch
):
    """D5"""
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("os.system was called"))
    modules = set(sys.modules)
    with pytest.raises(CodecError) as caught:
        codec.restore({"state": [0, tree]})
    assert caught.value.path.startswith("$.state[1]")
    assert "this" not in set(sys.modules) - modules


def test_a_class_that_gained_a_field_with_a_default_is_read():
    tree = codec.flatten(Point(1, 2))
    del tree["v"]["y"]
    assert codec.restore(tree) == Point(1, 0)
    tree = codec.flatten(Note(text="x"))
    del tree["v"]["tags"]
    assert codec.restore(tree) == Note(text="x")


@pytest.mark.parametrize("text", ["", "{", "nan", "NaN", "[Infinity]", '"\\ud8"', b"\xff"])
def test_a_text_that_is_not_json_is_a_typed_error(text):
    with pytest.raises(CodecError, match="not JSON"):
        codec.loads(text)


def test_the_encoder_refuses_what_was_not_flattened():
    with pytest.raises(CodecError, match="flatten the value first"):
        codec.encode(["\ud800", datetime(2024, 1, 1, tzinfo=UTC)])
