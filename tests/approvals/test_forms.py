from __future__ import annotations

import json

import pytest
from django.http import QueryDict
from hypothesis import example, given
from hypothesis import strategies as st

from approvals.forms import fields as kind
from approvals.forms.posted import add_row, proposed, read_draft, remove_row
from approvals.forms.problems import problems
from approvals.forms.schema_form import form_of
from approvals.forms.values import NotJson, parse_json, same

any_text = st.text(st.characters(exclude_categories=()))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(any_text, below, max_size=4),
    max_leaves=15,
)

MAIL = {
    "to": ["helen@example.com", "jose@example.com"],
    "subject": "Brief",
    "body": "Dear Helen,\r\n\r\nthe brief.",
    "copies": 7,
    "price": 1.0,
    "send_at": "2026-11-27T07:30:00+01:00",
    "urgent": True,
    "note": None,
}
MAIL_SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1},
        "subject": {"type": "string", "maxLength": 40},
        "body": {"type": "string", "format": "textarea"},
        "copies": {"type": "integer", "minimum": 1},
        "price": {"type": "number"},
        "send_at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "urgent": {"type": "boolean"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "importance": {"$ref": "#/$defs/Importance"},
    },
    "required": ["to", "subject", "body", "copies"],
    "$defs": {"Importance": {"enum": ["low", "high"]}},
}


def posting(form, **typed) -> QueryDict:
    """What a browser sends for this form: line ends as CRLF, an unticked box not at all; `typed` by key of the root."""
    entries = QueryDict(mutable=True)
    entries["view"] = "form"
    names = {f"$.{key}": text for key, text in typed.items()}

    def walk(field):
        if field.kind == kind.LIST:
            entries.appendlist(field.rows_name, "")
            for row in field.fields:
                entries.appendlist(field.rows_name, row.row)
        if field.is_group:
            for each in field.fields:
                walk(each)
        elif field.kind == kind.BOOLEAN:
            if names.get(field.name, field.text):
                entries[field.name] = "on"
        elif field.kind != kind.FIXED:
            text = names.get(field.name, field.text)
            entries[field.name] = text.replace("\n", "\r\n") if field.kind in (kind.LONG, kind.JSON) else text

    walk(form)
    return entries


def edited(payload=MAIL, schema=MAIL_SCHEMA, **typed):
    return read_draft(posting(form_of(payload, schema), **typed), payload, schema)


def only_field(payload, schema=None, key="x"):
    return next(field for field in form_of({key: payload}, schema).fields if field.key == key)


# -- what nobody touched comes back equal ------------------------------------------------------------------


@given(any_json)
def test_any_payload_comes_back_as_it_was(payload):
    """A9"""
    draft = read_draft(posting(form_of(payload)), payload)
    assert draft.errors == {}
    assert same(draft.payload, payload)
    assert not draft.is_edited


@given(any_json)
@example({"$": []})  # looks like a typed value, and is none
def test_any_payload_comes_back_through_its_json(payload):
    """A9"""
    text = proposed(payload).json
    assert same(parse_json(text), payload)
    entries = QueryDict(mutable=True)
    entries["view"], entries["json"] = "json", text.replace("\n", "\r\n")
    assert same(read_draft(entries, payload).payload, payload)


@given(any_json, any_json)
def test_an_edit_as_json_becomes_a_form_that_means_the_same(payload, edit):
    entries = QueryDict(mutable=True)
    entries["view"], entries["json"] = "json", proposed(edit).json
    draft = read_draft(entries, payload)
    again = posting(draft.form)
    again["base"] = draft.base
    assert same(read_draft(again, payload).payload, edit)


def test_a_payload_with_its_schema_comes_back_as_it_was():
    assert same(edited().payload, MAIL)


def test_without_a_view_nothing_was_edited():
    assert read_draft(QueryDict("verdict=approve"), MAIL).payload is MAIL


# -- types survive ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "typed", "becomes"),
    [
        ("copies", "8", 8),
        ("price", "2", 2.0),
        ("price", "2.50", 2.5),
        ("subject", "7", "7"),
        ("note", "seen", "seen"),
        ("send_at", "2026-11-28T09:00", "2026-11-28T09:00:00+01:00"),
        ("send_at", "", None),
        ("importance", "high", "high"),
        ("body", "Dear José,\nnew.", "Dear José,\r\nnew."),
        ("urgent", "", False),
    ],
)
def test_an_edited_value_keeps_its_type(key, typed, becomes):
    """A13"""
    draft = edited(**{key: typed})
    assert draft.errors == {}
    assert same(draft.payload, {**MAIL, key: becomes})
    assert [change.path for change in draft.changes] == [f"$.{key}"]


def test_a_browser_that_drops_idle_seconds_changes_no_moment():
    assert same(edited(send_at="2026-11-27T07:30").payload, MAIL)


def test_an_optional_value_stays_away_while_its_control_is_empty():
    assert "importance" not in edited().payload


@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("copies", "seven", "Write a whole number, such as 7."),
        ("copies", "7.5", "Write a whole number, such as 7."),
        ("copies", "", "Write a number."),
        ("price", "1,5", "Write the number with a point: 1.5."),
        ("price", "1e999", "The number 1e999 is too large."),
        ("send_at", "tomorrow", "Write day and time as 2026-11-27T07:30."),
        ("importance", "urgent", "Choose one of: low, high."),
    ],
)
def test_what_cannot_be_read_is_said_at_its_field_and_stays_as_it_was_typed(key, typed, said):
    draft = edited(**{key: typed})
    assert draft.errors == {f"$.{key}": [said]}
    field = next(field for field in draft.form.fields if field.key == key)
    assert (field.text, field.errors) == (typed, (said,))


def test_a_field_that_the_form_does_not_have_is_named():
    """A9"""
    entries = posting(form_of(MAIL, MAIL_SCHEMA))
    entries["$.bcc"] = "eve@example.com"
    draft = read_draft(entries, MAIL, MAIL_SCHEMA)
    assert draft.errors == {"$.bcc": ["This form has no such field."]}
    assert draft.loose_errors == [("$.bcc", "This form has no such field.")]


def test_a_field_that_was_not_sent_is_named():
    """A9"""
    entries = posting(form_of(MAIL, MAIL_SCHEMA))
    del entries["$.subject"]
    assert list(read_draft(entries, MAIL, MAIL_SCHEMA).errors) == ["$.subject"]


# -- which control ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("short", {}, kind.TEXT),
        ("two\nlines", {}, kind.LONG),
        ("long " * 30, {}, kind.LONG),
        ("short", {"type": "string", "maxLength": 320}, kind.TEXT),
        ("short", {"type": "string", "maxLength": 2000}, kind.LONG),
        (7, {}, kind.INTEGER),
        (7.0, {}, kind.NUMBER),
        (True, {}, kind.BOOLEAN),
        (None, {}, kind.JSON),
        ([], {}, kind.JSON),
        ({}, {}, kind.JSON),
        ([1, 2], {}, kind.LIST),
        ({"a": 1}, {}, kind.OBJECT),
        ("a", {"enum": ["a", "b"]}, kind.CHOICE),
        ("a", {"const": "a"}, kind.FIXED),
        ("2026-11-27", {"type": "string", "format": "date"}, kind.DATE),
        ("soon", {"type": "string", "format": "date"}, kind.TEXT),
        ("2026-11-27T07:30:00Z", {"type": "string", "format": "date-time"}, kind.MOMENT),
        ("2026-11-27T07:30:00.123456Z", {"type": "string", "format": "date-time"}, kind.TEXT),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, kind.TEXT),
        (None, {"type": ["integer", "null"]}, kind.INTEGER),
        (5, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, kind.INTEGER),
        ("5", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, kind.TEXT),
        ("text", {"type": "integer"}, kind.JSON),
        ("a\x00b", {}, kind.JSON),
        ("pay \u202e001", {}, kind.JSON),
        ("\ud800", {}, kind.JSON),
        ([1] * 500, {}, kind.JSON),
        ({"$": "decimal", "v": "1.10"}, {}, kind.TEXT),
        ({"$": "set", "v": [1]}, {}, kind.JSON),
    ],
)
def test_the_control_follows_schema_and_value(value, schema, expected):
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    assert only_field(value, whole).kind == expected


def test_a_decimal_stays_a_decimal():
    amount = {"$": "decimal", "v": "1.10"}
    draft = edited({"amount": amount}, None, amount="2.20")
    assert same(draft.payload, {"amount": {"$": "decimal", "v": "2.20"}})


def test_a_broken_schema_does_not_hide_the_payload():
    for schema in ({"type": 7}, {"$ref": "#/nowhere"}, {"$ref": "#"}, "no schema", {"properties": []}):
        assert same(read_draft(posting(form_of(MAIL, schema)), MAIL, schema).payload, MAIL)


def test_a_schema_that_refers_to_another_address_is_not_fetched():
    schema = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    assert only_field("text", schema).kind == kind.TEXT
    assert "cannot be used" in problems({"x": "text"}, schema)["$"][0]


def test_a_schema_that_refers_to_itself_ends():
    schema = {
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}},
        "$ref": "#/$defs/n",
    }
    payload: dict = {}
    for _level in range(50):
        payload = {"next": payload}
    assert same(read_draft(posting(form_of(payload, schema)), payload, schema).payload, payload)


def test_a_payload_of_thousands_of_values_becomes_one_json_field():
    payload = {f"k{n}": n for n in range(3000)}
    assert form_of(payload).kind == kind.JSON


# -- lists --------------------------------------------------------------------------------------------------


def test_a_row_is_added_and_filled():
    entries = posting(form_of(MAIL, MAIL_SCHEMA))
    add_row(entries, "$.to")
    opened = read_draft(entries, MAIL, MAIL_SCHEMA).without_errors()
    names = [field.name for field in next(f for f in opened.form.fields if f.key == "to").fields]
    assert names == ["$.to[0]", "$.to[1]", "$.to[n1]"]
    entries["$.to[n1]"] = "ada@example.com"
    assert read_draft(entries, MAIL, MAIL_SCHEMA).payload["to"] == [*MAIL["to"], "ada@example.com"]


def test_a_row_is_removed_and_the_others_keep_their_values():
    entries = posting(form_of(MAIL, MAIL_SCHEMA))
    remove_row(entries, "$.to[0]")
    draft = read_draft(entries, MAIL, MAIL_SCHEMA)
    assert draft.errors == {}
    assert draft.payload["to"] == ["jose@example.com"]


def test_rows_of_different_kinds_keep_them_when_one_goes():
    payload = {"x": ["1", 1, 1.0, None, True]}
    entries = posting(form_of(payload))
    remove_row(entries, "$.x[0]")
    assert same(read_draft(entries, payload).payload, {"x": [1, 1.0, None, True]})


def test_all_rows_can_go():
    entries = posting(form_of(MAIL, MAIL_SCHEMA))
    remove_row(entries, "$.to[0]")
    remove_row(entries, "$.to[1]")
    assert read_draft(entries, MAIL, MAIL_SCHEMA).payload["to"] == []


def test_a_new_row_of_objects_is_made_like_its_neighbours():
    payload = {"lines": [{"sku": "T-1", "qty": 1}]}
    entries = posting(form_of(payload))
    add_row(entries, "$.lines")
    entries["$.lines[n1].sku"], entries["$.lines[n1].qty"] = "T-2", "3"
    assert same(
        read_draft(entries, payload).payload, {"lines": [{"sku": "T-1", "qty": 1}, {"sku": "T-2", "qty": 3}]}
    )


# -- JSON by hand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1\n "b": 2}', "Line 2, column 2: a comma is missing here"),
        ('{"a": }', "a value is missing here"),
        ("{'a': 1}", "a name in double quotes"),
        ('{"a": 1} x', "something is left over"),
        ('{"a": "b', "closing quote is missing"),
        ('{"a": 1, "a": 2}', 'The name "a" is there twice'),
        ("NaN", "NaN is not a JSON value"),
        ("1e999", "too large"),
        ("", "a value is missing here"),
        ("1" * 5000, "too long"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_json_is_said_with_its_place(text, said):
    with pytest.raises(NotJson, match=".*") as refused:
        parse_json(text)
    assert said in str(refused.value)


def test_json_that_cannot_be_read_keeps_what_was_typed():
    entries = QueryDict(mutable=True)
    entries["view"], entries["json"] = "json", '{"to": '
    draft = read_draft(entries, MAIL)
    assert draft.json == '{"to": '
    assert draft.errors["json"]


# -- problems in plain words --------------------------------------------------------------------------------


def test_problems_name_path_and_remedy():
    """A9"""
    wrong = {**MAIL, "to": [], "copies": "7", "subject": "x" * 41, "note": 5}
    del wrong["body"]
    assert problems(wrong, MAIL_SCHEMA) == {
        "$.body": ['"body" is missing; it is required.'],
        "$.to": ["This needs at least 1 entry."],
        "$.copies": ["This must be a whole number, not a text."],
        "$.subject": ["This is too long: 41 characters, 40 are the most."],
        "$.note": ["This must be a text or nothing (null), not a whole number."],
    }


def test_unknown_keys_are_named():
    """A9"""
    schema = {"type": "object", "properties": {"to": {}}, "additionalProperties": False}
    assert problems({"to": 1, "cc": 2}, schema) == {"$.cc": ['"cc" is not known here; known are: to.']}


def test_a_fitting_payload_has_no_problems():
    assert problems(MAIL, MAIL_SCHEMA) == {}
    assert problems({"anything": 1}, None) == {}


def test_errors_of_a_verb_stand_at_the_field_of_their_path():
    draft = edited(copies="8").with_errors({"$.to[1]": ["Nobody has this address."], "$": ["No."]})
    second = next(field for field in draft.form.fields if field.key == "to").fields[1]
    assert second.errors == ("Nobody has this address.",)
    assert json.loads(draft.json)["copies"] == 8
