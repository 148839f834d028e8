from __future__ import annotations

import collections
import dataclasses
import enum
import json
import os
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Literal, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from runs.core import codec
from runs.core.codec_text import exact
from runs.core.codec_tree import own_copy, same
from runs.core.errors import CodecError
from tests.core.values import (
    TREES,
    VALUES,
    Colour,
    Level,
    Note,
    Open,
    Place,
    Point,
    Rights,
    Word,
    exactly,
)

PATIENT = settings(deadline=None, max_examples=200)


# Round trips.


@PATIENT
@given(VALUES)
def test_every_value_comes_back_equal_in_type_and_value(value):
    """D1"""
    tree = codec.flatten(value)
    assert exactly(codec.restore(tree), value)
    stored = codec.decode(codec.encode(tree))
    assert same(stored, tree)
    assert exactly(codec.restore(stored), value)
    assert codec.encode(stored) == codec.encode(tree)


@PATIENT
@given(VALUES)
def test_the_text_can_be_stored_in_any_database(value):
    """D1"""
    text = codec.dumps(value)
    text.encode()
    assert "\x00" not in text
    assert codec.digest(text) == codec.digest(text.encode())


@pytest.mark.parametrize(
    "value",
    [
        "a\x00b",
        "\ud800",
        "\ud83d\ude00",
        {"\ud800\udc00": 1},
        2**200,
        -(2**63) - 1,
        1 << 100_000,
        Decimal("1.10"),
        Decimal("-0E+3"),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        timedelta(days=-1, microseconds=1),
        UUID(int=7),
        {1, "a", None},
        frozenset({(1, 2), b"\xff"}),
        b"\x00\xff",
        (1, [2], ()),
        Colour.RED,
        Word.YES,
        Level.HIGH,
        Rights.READ | Rights.WRITE,
        {1: "a", True and 2: "b"},
        {"$": "int", "v": "0x1"},
        {Word.YES: 1},
        {None: {(): Place("here", 1)}},
        [True, 1, 1.0, -0.0, 0.0, 5e-324, 1e16],
        codec.BlobRef("ab" * 32, 3, "text/plain"),
        codec.SecretRef("API_KEY"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_known_hard_values_come_back(value):
    """D1"""
    assert exactly(codec.loads(codec.dumps(value, sort=False)), value)


def test_a_validated_datetime_keeps_the_zone_class_of_pydantic():
    """D1"""

    class Meeting(BaseModel):
        at: datetime

    codec.allow_annotations(Meeting)
    meeting = Meeting.model_validate({"at": "2024-10-27T02:30:00+01:00"})
    assert exactly(codec.loads(codec.dumps(meeting)), meeting)


def test_which_fields_were_set_private_and_extra_ones_come_back():
    note = Note(text="x")
    back = codec.loads(codec.dumps(note))
    assert back.model_fields_set == {"text"}
    open_note = Open(more=1)
    open_note._seen = 4
    back = codec.loads(codec.dumps(open_note))
    assert (back.model_extra, back._seen, back.model_fields_set) == ({"more": 1}, 4, {"more"})


def test_what_a_dataclass_holds_beside_its_fields_comes_back_and_a_cached_property_is_made_anew():
    @codec.storable
    @dataclasses.dataclass
    class Area:
        side: int

        def __post_init__(self):
            self.made = self.side + 1

        @cached_property
        def size(self):
            return self.side**2

    area = Area(3)
    assert area.size == 9
    tree = codec.flatten(area)
    assert "size" not in json.dumps(tree)
    back = codec.restore(tree)
    assert (back, back.made, back.size) == (area, 4, 9)


# One canonical form.


@PATIENT
@given(TREES, st.booleans())
def test_both_encoders_write_the_same_bytes(tree, sort):
    assert exact(tree, sort) == codec.encode(tree, sort)


@PATIENT
@given(VALUES, st.randoms(use_true_random=False))
def test_the_sorted_text_does_not_depend_on_insertion_order(value, random):
    def shuffled(part):
        if isinstance(part, dict):
            items = list(part.items())
            random.shuffle(items)
            return {key: shuffled(item) for key, item in items}
        if isinstance(part, list):
            return [shuffled(item) for item in part]
        return part

    assert codec.dumps(shuffled(value)) == codec.dumps(value)


def test_pairs_are_sorted_in_the_sorted_text_and_keep_their_order_in_state():
    one, other = {1: "\ud800", 2: {"$": 0, "a": 1}}, {2: {"a": 1, "$": 0}, 1: "\ud800"}
    assert codec.dumps(one) == codec.dumps(other)
    assert codec.dumps(one, sort=False) != codec.dumps(other, sort=False)
    assert list(codec.loads(codec.dumps(other, sort=False))) == [2, 1]


def test_a_number_a_text_and_a_truth_have_different_texts():
    texts = [
        codec.dumps(value)
        for value in (1, 1.0, True, "1", Level.LOW, Word.YES, "yes", (1,), [1], {1}, -0.0, 0.0)
    ]
    assert len(set(texts)) == len(texts)


def test_the_canonical_text_is_fixed():
    value = {"b": [1.0, "é\x00\ud800"], "a": Decimal("1.10")}
    assert codec.dumps(value) == '{"a":{"$":"decimal","v":"1.10"},"b":[1.0,"é\\u0000\\ud800"]}'


# Flattening beside the tree of the step before.


@PATIENT
@given(VALUES)
def test_what_did_not_change_is_the_same_object(value):
    tree = codec.flatten(value)
    assert codec.flatten(value, like=tree) is tree
    loaded = codec.decode(codec.encode(tree))
    assert codec.flatten(codec.restore(loaded), like=loaded) is loaded


@PATIENT
@given(VALUES, VALUES)
def test_beside_any_other_tree_the_result_is_the_same(value, other):
    assert same(codec.flatten(value, like=codec.flatten(other)), codec.flatten(value))


@PATIENT
@given(TREES, st.data())
def test_a_mutation_anywhere_makes_another_tree_and_leaves_the_first_alone(tree, data):
    value = codec.restore(tree)
    kept = own_copy(tree)
    places = []

    def collect(part):
        if isinstance(part, (dict, list)):
            places.append(part)
            for item in part.values() if isinstance(part, dict) else part:
                collect(item)

    collect(value)
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    if isinstance(place, list):
        place.insert(data.draw(st.integers(0, len(place))), "new")
    else:
        place["a key that was not there"] = None
    changed = codec.flatten(value, like=tree)
    assert changed is not tree
    assert not same(changed, tree)
    assert same(changed, codec.flatten(value))
    assert same(tree, kept)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1], [True]),
        ([1], [1.0]),
        ([0.0], [-0.0]),
        ({"a": 0.0, "b": []}, {"a": -0.0, "b": []}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"b": 1}),
        ([], ()),
        ([[1]], [(1,)]),
        ({1}, frozenset({1})),
        (["a", "b"], ["a"]),
        (["a"], ["a", "a"]),
        ("yes", Word.YES),
        (2**64, {"$": "int", "v": hex(2**64)}),
        (Point(1, 2), Point(1.0, 2)),
        (Note(text=1), Note(text=1, tags=[])),
        ([None], []),
        (None, []),
    ],
    ids=repr,
)
def test_a_change_of_type_or_order_alone_is_a_change(before, after):
    tree = codec.flatten(before)
    changed = codec.flatten(after, like=tree)
    assert changed is not tree
    assert exactly(codec.restore(changed), after)


def test_a_dict_that_looks_like_a_stored_form_is_not_taken_for_it():
    """D1"""
    for form in (codec.flatten(2**64), codec.flatten(Point(1)), codec.flatten((1,))):
        assert exactly(codec.restore(codec.flatten({**form}, like=form)), form)


def test_unchanged_neighbours_are_shared():
    tree = codec.flatten({"long": [{"a": [1]}] * 3, "note": Note(text="x"), "n": 1})
    changed = codec.flatten({"long": [{"a": [1]}] * 3, "note": Note(text="x"), "n": 2}, like=tree)
    assert changed["long"] is tree["long"]
    assert changed["note"] is tree["note"]


def test_a_tree_shares_no_container_with_the_value():
    value = {"list": [1], "deep": [{"a": []}], "empty": {}, "set": {1}}
    tree = codec.flatten(value)
    grown = codec.flatten(value, like=codec.flatten({"list": [], "deep": []}))
    value["list"].append(2)
    value["deep"][0]["a"].append(3)
    value["empty"]["b"] = 1
    assert tree["list"] == grown["list"] == [1]
    assert tree["deep"] == grown["deep"] == [{"a": []}]
    assert tree["empty"] == grown["empty"] == {}


# Refusals.


def refusal(value):
    with pytest.raises(CodecError) as caught:
        codec.flatten(value)
    return caught.value


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


# The allow-list.


class Mood(enum.Enum):
    FINE = 1


class Inner(BaseModel):
    mood: Mood


@dataclasses.dataclass
class Leaf:
    word: Literal[Mood.FINE] = Mood.FINE
    later: Optional["Later"] = None  # noqa: UP037, UP045 (a forward reference is the point)


@dataclasses.dataclass
class Later:
    n: int = 0


class Outer(BaseModel):
    inner: Annotated[Inner | None, Field(description="x")] = None
    leaves: dict[str, list[tuple[Leaf, ...]]] = {}


def test_annotations_allow_every_class_that_they_name():
    codec.allow_annotations(Outer | None)
    outer = Outer(inner=Inner(mood=Mood.FINE), leaves={"a": [(Leaf(later=Later(3)),)]})
    assert exactly(codec.loads(codec.dumps(outer)), outer)


def test_a_class_defined_after_the_one_that_names_it_is_allowed_when_it_is_needed():
    namespace = {"__name__": "later_module"}
    module = type(sys)("later_module")
    sys.modules["later_module"] = module
    try:
        source = "import dataclasses\n@dataclasses.dataclass\nclass A:\n    b: 'B'\n"
        exec(source, module.__dict__)  # noqa: S102
        codec.storable(module.A)
        exec("@dataclasses.dataclass\nclass B:\n    n: int\n", module.__dict__)  # noqa: S102
        value = module.A(module.B(1))
        assert codec.loads(codec.dumps(value)) == value
    finally:
        del sys.modules["later_module"], namespace


def test_a_class_that_cannot_be_stored_cannot_be_allowed():
    for cls in (dict, object, Row):
        with pytest.raises(TypeError, match="only an Enum, a pydantic model or a dataclass"):
            codec.storable(cls)


def test_a_class_that_another_of_its_name_has_replaced_is_refused():
    def made():
        @codec.storable
        @dataclasses.dataclass
        class Twin:
            a: int

        return Twin

    first, second = made(), made()
    assert codec.loads(codec.dumps(second(1))) == second(1)
    assert "not allowed" in refusal(first(1)).reason


# The state of a graph.


class Brief(BaseModel):
    goal: str
    count: float = 0
    tags: set[str] = set()
    notes: list[Note] = []
    mood: Colour = Field(default=Colour.RED, alias="humour")


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 0


def stored(tree):
    return codec.decode(codec.encode(tree))


def test_a_state_is_stored_by_field_and_comes_back_as_its_model():
    brief = Brief(goal="g", notes=[Note(text=(1,))], tags={"b", "a"})
    tree = codec.flatten_model(brief)
    assert list(tree) == ["goal", "count", "tags", "notes", "mood"]
    back = codec.restore_model(Brief, stored(tree))
    assert exactly(vars(back), vars(brief))
    assert codec.flatten_model(back, like=tree) is tree


def test_a_state_keeps_the_types_that_were_stored_even_where_validation_would_convert():
    """D1"""
    brief = Brief(goal="g")
    brief.count = 3
    brief.tags = ["a"]
    back = codec.restore_model(Brief, stored(codec.flatten_model(brief)))
    assert exactly((back.count, back.tags), (3, ["a"]))


def test_a_state_that_its_model_would_not_take_back_is_refused_when_it_is_written():
    """D1"""
    brief = Brief(goal="g")
    tree = codec.flatten_model(brief)
    brief.notes = [Note(text=""), "no note"]
    with pytest.raises(CodecError) as caught:
        codec.flatten_model(brief, like=tree)
    assert caught.value.path == "$.notes[1]"
    assert "Brief" in caught.value.reason


def test_extra_fields_belong_to_the_state():
    tree = codec.flatten_model(Anything(known=1, more=(2,)))
    back = codec.restore_model(Anything, stored(tree))
    assert exactly(back.model_extra, {"more": (2,)})
    with pytest.raises(CodecError, match=r"\$\.more\[0\]: is a complex"):
        codec.flatten_model(Anything(more=[1j]))


def test_a_root_model_is_a_state_too():
    class Names(RootModel[list[str]]):
        pass

    assert codec.restore_model(Names, codec.flatten_model(Names(["a"]))) == Names(["a"])


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"goal": "g", "gone": 1}, "$.gone"),
        ({"count": 1.0}, "$.goal"),
        ({"goal": 1}, "$.goal"),
        ({"goal": "g", "notes": [{"$": "model", "c": "os:system", "v": {}}]}, "$.notes[0]"),
        ({"$": "tuple", "v": []}, "$"),
        ([], "$"),
        (None, "$"),
    ],
)
def test_a_stored_state_that_does_not_fit_is_a_typed_error_naming_the_path(tree, path):
    """D5"""
    with pytest.raises(CodecError) as caught:
        codec.restore_model(Brief, tree)
    assert caught.value.path == path


def test_a_refused_state_does_not_show_its_values():
    class Strict(BaseModel):
        token: str

        @field_validator("token")
        @classmethod
        def short(cls, token):
            if len(token) > 5:
                raise ValueError("is too long")
            return token

    with pytest.raises(CodecError) as caught:
        codec.restore_model(Strict, {"token": "canary-canary"})
    assert "canary" not in str(caught.value)
