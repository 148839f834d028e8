"""What is wrong with a payload, in the reader's language: JSON by hand, and each rule that a schema can have."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from django.utils.translation import override
from jsonschema import Draft202012Validator

from approvals.forms.problems import problems
from approvals.forms.schema_form import form_of
from approvals.forms.values import NotJson, parse_json
from approvals.payload import as_json, fitting, read
from runs.errors import Invalid
from tests.durableweb.pseudo_german import pseudo_german, unmarked

BROKEN_JSON = (
    '{"α": 1 "β": 2}', '{"α" 1}', '{"α": 1,}', '[1, ]', '{"α": }', '{"α": 1} 2', '"α', '"\t"', '"\\α"', '"\\u12"',
    "NaN", "-Infinity", "1e999", "1" * 5000, "[" * 100_000, '{"α": 1, "α": 2}', "", "\ufeff1",
)  # fmt: skip

# keyword -> its limit, and a payload that breaks it. Greek is what authors and people wrote.
BROKEN_RULES = {
    "additionalProperties": (False, {"α": 1}),
    "anyOf": ([{"type": "object"}, {"type": "array"}], 1),
    "const": ("α", "β"),
    "contains": ({"const": "α"}, ["β"]),
    "dependentRequired": ({"α": ["β"]}, {"α": 1}),
    "enum": (["α", "β"], "γ"),
    "exclusiveMaximum": (7, 7),
    "exclusiveMinimum": (7, 7),
    "format": ("date", "α"),
    "maxItems": (1, ["α", "β"]),
    "maxLength": (1, "αβ"),
    "maxProperties": (1, {"α": 1, "β": 2}),
    "maximum": (1, 2),
    "minItems": (2, []),
    "minLength": (2, "α"),
    "minProperties": (2, {}),
    "minimum": (2, 1),
    "multipleOf": (2, 1),
    "not": ({"const": "α"}, "α"),
    "oneOf": ([{"minLength": 1}, {"minLength": 2}], "αβγ"),
    "pattern": ("^α$", "β"),
    "required": (["α"], {}),
    "type": (["object", "array", "string", "boolean", "null", "number"], 7),
    "unevaluatedItems": (False, ["α"]),
    "unevaluatedProperties": (False, {"α": 1}),
    "uniqueItems": (True, ["α", "α"]),
}
# These only lead on to others.
LEAD_ON = set(
    "$dynamicRef $ref allOf dependentSchemas if items patternProperties prefixItems properties".split()
)
LEAD_ON |= {"propertyNames"}


@pytest.mark.parametrize("text", BROKEN_JSON, ids=[text[:12] for text in BROKEN_JSON])
def test_what_is_no_json_is_told_in_the_readers_language(text: str) -> None:
    with pseudo_german() as seen, override("de"), pytest.raises(NotJson) as refused:
        parse_json(text)
    assert unmarked(str(refused.value), {"NaN", "Infinity"}) == []
    assert seen.english == set()


def test_there_is_a_case_for_each_rule_of_a_schema() -> None:
    assert BROKEN_RULES.keys() | LEAD_ON == Draft202012Validator.VALIDATORS.keys()


@pytest.mark.parametrize("form", sorted(Draft202012Validator.FORMAT_CHECKER.checkers))
def test_a_text_of_another_form_is_told_in_the_readers_language(form: str) -> None:
    with pseudo_german() as seen, override("de"):
        (text,) = problems("α ..(", {"format": form})["$"]
    assert text.count("⟦") > 1
    assert unmarked(text, {"IPv4", "IPv6", "UUID", "JSON"}) == []
    assert seen.english == set()


@pytest.mark.parametrize("rule", BROKEN_RULES)
def test_a_rule_that_is_broken_is_told_in_the_readers_language(rule: str) -> None:
    """A9: field errors, with path and remedy."""
    limit, payload = BROKEN_RULES[rule]
    schema = {rule: limit}
    if rule == "type":
        schema, payload = {"type": "integer"}, [1]
    assert problems(payload, schema), "told in English too"
    with pseudo_german() as seen, override("de"):
        told = problems(payload, schema)
    for texts in told.values():
        for text in texts:
            assert text.count("⟦") > 0
            assert unmarked(text, {rule}) == []
    assert seen.english == set()


@pytest.mark.parametrize(
    ("proposed", "edited"),
    [
        ({"α": 1}, {"α": 1, "β": 2}),
        ({}, {"β": 2}),
        ({"α": 1}, {}),
        ({"α": {"β": 1}}, {"α": 2}),
        ({"α": 1}, {"α": {"$": "secret", "v": "β"}}),
    ],
    ids=["unknown", "nothing known", "missing", "no object", "a secret"],
)
def test_an_edit_that_does_not_fit_is_told_in_the_readers_language(proposed, edited) -> None:
    """A9: without a schema the proposal's own keys are the only ones known."""
    request = {"payload": proposed, "schema": None, "call": None}
    with pseudo_german() as seen, override("de"), pytest.raises(Invalid) as refused:
        fitting(request, None, read(edited)[0])
    for text in (refused.value.message, *(text for texts in refused.value.fields.values() for text in texts)):
        assert text.count("⟦") > 0 and unmarked(text, set("$")) == []
    assert seen.english == set()


def test_the_kinds_that_json_has_no_type_for_are_named_in_the_readers_language() -> None:
    kinds = {
        "α": Decimal("1.10"),
        "β": date(2026, 11, 27),
        "γ": time(7),
        "δ": datetime(2026, 11, 27, 7, tzinfo=UTC),
    }
    with pseudo_german() as seen, override("de"):
        hints = [field.hint for field in form_of(as_json(kinds)).fields]
    assert len(hints) == len(kinds) and all(hint.startswith("⟦") for hint in hints)
    assert seen.english == set()
