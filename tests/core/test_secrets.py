from __future__ import annotations

import base64
import json
from decimal import Decimal
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core.codec import SecretRef, dumps, encode, flatten, restore
from runs.core.errors import SecretFound
from runs.core.secrets import Guard
from tests.amounts import examples
from tests.core.values import TREES, VALUES, Note, Open, Place, Point

CANARY = 'c4nary/+"é ü~key'
GUARD = Guard({"API_KEY": CANARY, "SHORT": "abc1234", "NUMBER": "90210902109021", "EMPTY": ""})


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        f"Bearer {CANARY}!",
        json.dumps({"a": CANARY}),
        dumps({"a": [CANARY]}),
        quote(CANARY),
        quote(CANARY, safe=""),
        quote_plus(CANARY),
        quote(CANARY).lower().replace("%c3%a9", "%c3%a9"),
        "https://example.org/?" + urlencode({"key": CANARY}),
        base64.b64encode(CANARY.encode()).decode(),
        base64.b64encode(f"user:{CANARY}".encode()).decode(),
        base64.b64encode(f"u:{CANARY}:more".encode()).decode(),
        base64.b64encode(f"me:{CANARY}".encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(f"x{CANARY}".encode()).decode(),
    ],
)
def test_a_value_is_found_in_every_form_it_travels_in(text):
    """O4"""
    assert GUARD.find(text) == "API_KEY"
    assert CANARY not in GUARD.redact(text)
    assert GUARD.find(GUARD.redact(text)) is None
    assert "«secret:API_KEY»" in GUARD.redact(text)


@given(
    st.text(st.characters(codec="utf-8"), min_size=8).filter(lambda value: len(value.strip()) >= 8),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
@settings(deadline=None)
def test_any_value_is_found_in_base64_at_any_offset(value, before, after):
    guard = Guard({"KEY": value})
    content = before + value.encode() + after
    assert guard.find(base64.b64encode(content).decode()) == "KEY"
    assert guard.find(base64.urlsafe_b64encode(content).decode().rstrip("=")) == "KEY"


def test_short_values_are_not_looked_for():
    assert GUARD.find("abc1234") is None
    assert Guard({"EIGHT": "abcd1234"}).find("xabcd1234x") == "EIGHT"


def test_a_value_with_a_line_end_is_found_without_it():
    assert Guard({"FILE": "long-password\n"}).find("p=long-password;") == "FILE"


def test_a_value_with_a_lone_surrogate_is_guarded_too():
    assert Guard({"ODD": "odd-\udce9-value"}).find(dumps("odd-\udce9-value")) == "ODD"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"headers": {"auth": f"Bearer {CANARY}"}}, "$.headers.auth"),
        (["a", ("b", {"a b": CANARY})], "$[1][1]['a b']"),
        (Note(text=1, tags=[0, CANARY]), "$.tags[1]"),
        (Point(1, {2: CANARY}), "$.y[2]"),
        (Open(more=CANARY), "$.more"),
        ({"bytes": f"u:{CANARY}".encode()}, "$.bytes"),
        ({"set": {CANARY}}, "$.set[0]"),
        ([Place(CANARY, 1)], "$[0].name"),
        ({"n": 90210902109021}, "$.n"),
        ({"n": Decimal("90210902109021.5")}, "$.n"),
        ({CANARY: 1}, "$['«secret:API_KEY»']"),
        (CANARY, "$"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_canary_is_located_wherever_it_is_nested(value, path):
    """O4"""
    tree = flatten(value)
    found = GUARD.locate(tree)
    assert found is not None
    assert found[0] == path
    assert found[1] in ("API_KEY", "NUMBER")
    assert GUARD.find(encode(tree))


def test_a_refusal_names_path_and_secret_and_never_the_value():
    with pytest.raises(SecretFound) as caught:
        GUARD.refuse(f"x{CANARY}", "$.body")
    assert (
        str(caught.value)
        == "$.body: holds the value of the secret API_KEY; pass run.secret('API_KEY') instead"
    )
    assert CANARY not in repr(caught.value)
    assert CANARY not in repr(GUARD)
    GUARD.refuse("nothing here", "$.body")


def test_a_reference_to_a_secret_is_no_secret():
    assert GUARD.locate(flatten({"key": SecretRef("API_KEY")})) is None


def test_the_longest_value_is_redacted_first():
    guard = Guard({"PART": "password", "WHOLE": "password-and-more"})
    assert guard.redact("a password-and-more b password") == "a «secret:WHOLE» b «secret:PART»"


@settings(deadline=None, max_examples=examples(100))
@given(VALUES)
def test_a_redacted_tree_can_be_restored_and_holds_no_secret(value):
    """O4"""
    tree = flatten(
        {
            "clean": value,
            "bytes": CANARY.encode(),
            "deep": [(CANARY, {CANARY: {1: f"x{CANARY}"}})],
            "n": 90210902109021,
        }
    )
    redacted = GUARD.redact_tree(tree)
    assert GUARD.locate(redacted) is None
    assert GUARD.find(encode(redacted)) is None
    back = restore(redacted)
    assert back["deep"] == [("«secret:API_KEY»", {"«secret:API_KEY»": {1: "x«secret:API_KEY»"}})]
    assert back["bytes"] == "«secret:API_KEY»"
    assert back["n"] == "«secret:NUMBER»"


@settings(deadline=None, max_examples=examples(50))
@given(TREES)
def test_a_guard_without_secrets_lets_everything_pass_as_it_is(tree):
    guard = Guard({})
    assert guard.find(encode(tree)) is None
    assert guard.locate(tree) is None
    assert guard.redact_tree(tree) is tree
    assert guard.redact("text") == "text"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"OLD": "hunter2hunter", "NEW": "hunter2hunter-and-more"}, "it is hunter2hunter-and-more, it is"),
        ({"OLD": "hunter2hunter", "NEW": "hunter2hunter-and-more"}, "it is hunter2hunter-and-not, it is"),
        ({"ONE": "abcdefghXY", "TWO": "XYabcdefgh"}, "abcdefghXYabcdefgh abcdefghXY XYabcdefgh"),
        ({"ONE": "aaaaaaaa", "TWO": "aaaaaaaaaaab"}, "aaaaaaaaaaaaaaaaaaab and aaaaaaaaaaaaa."),
        ({}, "nothing to hide"),
    ],
)
def test_a_text_that_comes_in_pieces_is_redacted_as_if_it_came_at_once(values, text):
    guard = Guard(values)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            told, rest = "", ""
            for piece in (text[:first], text[first:second], text[second:] + " \n"):
                more, rest = guard.redact_begun(rest + piece)
                told += more
            assert told + rest == guard.redact(text + " \n") and rest == ""
