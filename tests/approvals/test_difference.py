from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from approvals.forms.difference import change_of, changes, word_difference
from tests.approvals.test_forms import any_json


def shown(old: str, new: str) -> str:
    """[-gone-] and {+came+}, one paragraph a line, as one reads them."""
    marks = {"same": "{}", "del": "[-{}-]", "ins": "{{+{}+}}"}
    return "\n".join(
        f"({paragraph.folded})"
        if paragraph.is_fold
        else "".join(marks[piece.kind].format(piece.text) for piece in paragraph.pieces)
        for paragraph in word_difference(old, new)
    )


def test_changed_words_are_shown_and_unchanged_paragraphs_folded():
    old = "Dear Helen,\n\nCorvid is 38 % cheaper.\n\nUse Corvid for everyone else.\n\nKind regards"
    new = "Dear Helen,\n\nCorvid is cheaper.\n\nAsk Corvid for an offer.\n\nKind regards"
    assert shown(old, new).splitlines() == [
        "(1)",
        "Corvid is [-38 % -]cheaper.",
        "[-Use-]{+Ask+} Corvid for [-everyone else-]{+an offer+}.",
        "(1)",
    ]


@given(st.text(), st.text())
def test_what_is_shown_is_all_of_both_texts(old, new):
    """Nothing of an edit is hidden: the pieces of unfolded paragraphs hold every changed line."""
    gone, came = [], []
    for paragraph in word_difference(old, new):
        gone += ["".join(piece.text for piece in paragraph.pieces if piece.kind != "ins")]
        came += ["".join(piece.text for piece in paragraph.pieces if piece.kind != "del")]
    for line in set(new.split("\n")) - set(old.split("\n")):
        assert line in came or not line
    for line in set(old.split("\n")) - set(new.split("\n")):
        assert line in gone or not line


@given(any_json)
def test_nothing_differs_from_itself(value):
    assert changes(value, value) == []


@given(any_json, any_json)
def test_what_differs_is_found(old, new):
    from approvals.forms.values import same

    assert bool(changes(old, new)) is not same(old, new)


def test_changes_name_their_place_and_both_sides():
    old = {"to": ["a", "b"], "copies": 7, "note": None, "at": {"day": 1}}
    new = {"to": ["a", "c"], "copies": "7", "at": {"day": 2}, "cc": "d"}
    assert [(change.path, change.kind, change.old, change.new) for change in changes(old, new)] == [
        ("$.to[1]", "changed", "b", "c"),
        ("$.copies", "changed", "7", '"7"'),
        ("$.at.day", "changed", "1", "2"),
        ("$.cc", "added", "", "d"),
        ("$.note", "removed", "null", ""),
    ]


def test_an_item_in_the_middle_is_one_change():
    old, new = [1, 2, 3, 4], [1, 3, 4]
    assert [(change.path, change.kind) for change in changes(old, new)] == [("$[1]", "removed")]


def test_signs_that_cannot_be_seen_are_spelled_out():
    (change,) = changes("pay 100", "pay \u202e001")
    assert change.new == "pay [U+202E]001"


def test_a_gone_address_is_seen_among_those_that_stay():
    change = change_of("$.to", "To", ["a@example.com", "b@example.com"], ["a@example.com"])
    (line,) = change.words
    assert [(piece.kind, piece.text) for piece in line.pieces if piece.text.strip()] == [
        ("same", "a@example.com "),
        ("del", "b@example.com"),
    ]
