"""Whatever pydantic may have against a value is said in the reader's language, of every kind that it knows."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pydantic
import pytest
from django.utils.translation import override
from pydantic import ByteSize, Field, FilePath, HttpUrl, Json, TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core._pydantic_core import list_all_errors

from runs import pydantic_words
from runs.pages.plain import first_line
from runs.unstorable import of_values
from tests.durableweb.pseudo_german import pseudo_german, unmarked

KINDS = {each["type"]: each for each in list_all_errors()}
PLURALS = ("", "s")


def templates() -> dict[str, str]:
    """Every text of its kinds with 7 in its places -> the kind."""
    return {
        re.sub(r"\{\w+\}", "7", form): kind
        for kind, each in KINDS.items()
        for text in (each["message_template_python"], each.get("message_template_json"))
        if text
        for plural in PLURALS
        for form in (text.replace("{expected_plural}", plural), *_not_more(text, plural))
    }


def _not_more(text: str, plural: str) -> list[str]:
    """Of what is read piece by piece it does not say how many there were."""
    said = text.replace("{expected_plural}", plural).replace("not {actual_length}", "not more")
    return [said] if "max_length" in text and said.endswith("not more") else []


def test_each_kind_of_error_has_its_sentence_and_each_sentence_its_kind() -> None:
    kinds = [*pydantic_words.of_kinds, *pydantic_words.of_choices]
    said = {re.sub(r"%\(\w+\)s", "7", sentence) for sentence in kinds}
    assert said == set(templates())


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_says_of_each_kind_leaves_no_english(kind: str) -> None:
    each = KINDS[kind]
    for number in (1, 7):
        context = {
            name: _given(name, value, number) for name, value in (each["example_context"] or {}).items()
        }
        said = {PydanticKnownError(kind, context or None).message()}
        if (text := each.get("message_template_json")) is not None:
            said.add(text.format(**context, expected_plural=PLURALS[number != 1]))
        for one in said:
            with pseudo_german() as seen, override("de"):
                told = of_values.retold(one)
            assert "⟦" in told and unmarked(told, {"zzz", "None"}) == [], one
            assert seen.english == set()


def _given(name: str, example: Any, number: int) -> Any:
    if name in ("error",) and example is None:
        return ValueError("zzz")
    return number if isinstance(example, int) or example is None else "zzz"


def test_what_it_says_of_its_own_types_is_what_stands_in_its_code() -> None:
    code = " ".join(path.read_text() for path in Path(pydantic.__file__).parent.rglob("*.py"))
    for sentence in pydantic_words.of_types:
        for part in re.split(r"%\(\w+\)s", sentence):
            assert part in code, sentence


UNFIT = [
    (date, ["x", "2026-13-01", "2026-01-01T10:00:00", "2026-01-45", "abcd-01-01", 3.5]),
    (datetime, ["x", "2026-01-01T25:00:00", "2026-01-01Q10:00", 1e300]),
    (time, ["x", "25:00", 1e9]),
    (timedelta, ["x", "P1", 1e300]),
    (
        UUID,
        ["x", "12345678-1234-1234-1234-12345678901", "12345678-1234-1234-123412345678901", "é", b"abc", 5],
    ),
    (
        HttpUrl,
        ["", "x", "ftp://x", "http://", "http://[::1", "http://a:99999", "http://1.2.3.4.5", "h" * 3_000],
    ),
    (Json, ["x", "{", "[1,", '{"a":}', '"\\x"', "[1,]", "1 2", "{1:2}"]),
    (Annotated[set[int], Field(max_length=2)], [[1, 2, 3]]),
    (Literal["alt", "neu", 3], ["x"]),
    (IPv4Address, ["x"]),
    (FilePath, ["/nowhere"]),
    (ByteSize, ["x"]),
]


@pytest.mark.parametrize(("kind", "values"), UNFIT, ids=lambda given: str(given)[:30])
def test_what_does_not_fit_is_said_in_german_with_the_reason(kind: Any, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValidationError) as refused:
            TypeAdapter(kind).validate_python(value)
        (fault,) = refused.value.errors()
        with pseudo_german() as seen, override("de"):
            told = of_values.retold(fault["msg"])
        assert unmarked(told, {"alt", "neu", "http", "https", "é", "Set"}) == [] and "⟦" in told, fault["msg"]
        assert seen.english == set()


def test_a_choice_is_told_and_what_stands_in_quotes_is_left() -> None:
    with override("de"):
        assert (
            of_values.retold("Input should be 'a', 'b or c' or 3")
            == "Die Eingabe muss 'a', 'b or c' oder 3 sein"
        )
        assert of_values.retold("Input should be 'b or c'") == "Die Eingabe muss 'b or c' sein"
        assert of_values.retold("Input should be greater than or equal to 3") != of_values.retold(
            "Input should be greater than or equal to 4"
        )
        assert "equal" not in of_values.retold("a: Input should be greater than or equal to 3")


RUN = "0198c1de-0000-7000-8000-00000000beef"


@pytest.mark.parametrize(
    "recorded",
    [
        "node 'draft': $.findings[3]: is 9,999 bytes, the limit is 999; keep it in a blob (run.blob)",
        f"run {RUN}, state after node 'draft': state: is 9,999 bytes, the limit is 9; keep it in a blob (run.blob)",
        "CodecError: $.to: Field required; a Brief cannot hold it (and 2 more)",
        "CodecError: $: is no stored state of Brief",
        "Permanent: search: vendor: Field required; count: Input should be a valid integer",
        "graph 'brief' has no node 'draft'",
    ],
)
def test_a_recorded_error_of_the_codec_is_said_in_german(recorded: str) -> None:
    names = set(
        "node draft findings CodecError Permanent search vendor count to Brief brief run blob beef".split()
    )
    with pseudo_german() as seen, override("de"):
        told = first_line(recorded)
    assert "⟦" in told and unmarked(told, names | {"state"}) == [] and seen.english == set()
    assert first_line(recorded) == (recorded.replace(RUN, "00beef"))


@pytest.mark.parametrize("theirs", ["Field required", "too dear", "Input should be a valid date", "a: b: c"])
def test_what_a_person_gave_as_a_reason_stays(theirs: str) -> None:
    with override("de"):
        assert first_line(theirs) == theirs
