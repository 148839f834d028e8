from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.payload import as_json, as_value, closed, other_references
from runs.core import codec

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
TYPED = st.one_of(
    LEAVES, st.decimals(allow_nan=False, allow_infinity=False), st.binary(), st.dates(), st.uuids()
)


def nested(leaves):
    keys = st.one_of(st.text(), st.just("$"))
    return st.recursive(
        leaves, lambda below: st.one_of(st.lists(below), st.dictionaries(keys, below)), max_leaves=12
    )


@given(nested(TYPED))
def test_a_page_gives_back_the_very_value_that_it_was_shown(value):
    """A13: types survive, also those that JSON does not have, and keys that look like ours."""
    assert codec.dumps(as_value(as_json(value))) == codec.dumps(value)


@given(nested(LEAVES).filter(lambda value: "$" not in codec.dumps(value)))
def test_plain_json_is_shown_as_it_is(value):
    assert as_json(value) == value


def test_what_json_has_no_type_for_is_shown_in_its_stored_form():
    assert as_json({"price": Decimal("1.10")}) == {"price": {"$": "decimal", "v": "1.10"}}
    moment = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=UTC)
    assert as_value(as_json([moment])) == [moment]


def test_an_object_with_named_keys_takes_no_others():
    named = {
        "type": "object",
        "properties": {"a": {"properties": {"additionalProperties": {"type": "string"}}}},
    }
    assert closed({"$defs": {"properties": named}, "items": named, "enum": [named], "allOf": [named]}) == {
        "$defs": {"properties": closed(named)},
        "items": closed(named),
        "enum": [named],
        "allOf": [named],
    }
    assert closed(named) == {
        "type": "object",
        "properties": {
            "a": {"properties": {"additionalProperties": {"type": "string"}}, "additionalProperties": False}
        },
        "additionalProperties": False,
    }


@pytest.mark.parametrize("word", ["additionalProperties", "patternProperties", "unevaluatedProperties"])
def test_the_author_can_leave_an_object_open(word):
    assert closed({"properties": {}, word: {}}) == {"properties": {}, word: {}}


def test_a_reference_stays_only_where_it_was():
    secret, blob = codec.SecretRef("KEY"), codec.BlobRef("0" * 64, 3, "text/plain")
    proposed = {"key": secret, "files": [blob], "body": "x"}
    assert other_references(proposed, proposed) == {}
    assert other_references(proposed, {**proposed, "key": None}) == {}
    assert set(
        other_references(proposed, {"key": secret, "files": [blob, blob], "body": [{"in": secret}]})
    ) == {
        "$.files[1]",
        "$.body[0].in",
    }
    assert set(other_references(proposed, {"key": codec.SecretRef("OTHER")})) == {"$.key"}
    assert set(other_references(None, (secret,)))
