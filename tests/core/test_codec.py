from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from runs.core import codec
from runs.core.codec_text import exact
from runs.core.codec_tree import own_copy, same
from tests.amounts import examples
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

PATIENT = settings(deadline=None, max_examples=examples(200))


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
