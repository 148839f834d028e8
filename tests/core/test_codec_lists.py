"""What is remembered of long lists of texts changes nothing but the time: a state flattens, restores, fits and differs
as one that nothing is remembered of."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from runs.core import codec, patch
from runs.core.codec_flatten import MANY
from runs.core.codec_tree import same
from runs.core.errors import CodecError
from tests.core.values import exactly


class Colour(str, Enum):  # noqa: UP042 - a text that is no text
    RED = "red"


codec.allow(Colour)


class Talk(BaseModel):
    left: int = 0
    said: list[str] = []
    mixed: list[Any] = []


WORDS = st.sampled_from(["red", "a", "b", "ö", "\ud800"])
ODD = st.sampled_from(["red", Colour.RED, 1, True, None, 1.0, ["red"], {"a": "red"}])
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(["said", "mixed"]), WORDS),
        st.tuples(st.just("append"), st.just("mixed"), ODD),
        st.tuples(st.just("put"), st.sampled_from(["said", "mixed"]), WORDS, st.integers(0, 40)),
        st.tuples(st.just("put"), st.just("mixed"), ODD, st.integers(0, 40)),
        st.tuples(st.just("drop"), st.sampled_from(["said", "mixed"]), st.integers(0, 40)),
        st.tuples(st.just("same"), st.sampled_from(["said", "mixed"])),
    ),
    max_size=4,
)


def edit(state: Talk, what: str, field: str, *given: Any) -> None:
    items = getattr(state, field)
    match what:
        case "append":
            items.append(given[0])
        case "put":
            items[given[1] % len(items) :][:1] = []
            items[given[1] % len(items)] = given[0]
        case "drop":
            del items[given[0] % len(items)]
        case "same":
            setattr(state, field, list(items))


@given(st.lists(EDITS, max_size=6))
def test_steps_with_and_without_what_is_remembered_are_the_same(steps):
    lists, many = codec.Lists(), ["red"] * (MANY + 4)
    tree = codec.flatten_model(Talk(said=list(many), mixed=list(many)), None, lists)
    plain = codec.flatten_model(Talk(said=list(many), mixed=list(many)))
    for edits in steps:
        state = codec.renew_model(Talk, tree, lists)
        bare = codec.restore_model(Talk, plain)
        assert exactly(vars(state), vars(bare))
        assert state.said is not tree["said"] and state.mixed is not tree["mixed"]
        for one in edits:
            edit(state, *one)
            edit(bare, *one)
        after, bare_after = codec.flatten_model(state, tree, lists), codec.flatten_model(bare)
        assert same(after, bare_after)
        assert (after is tree) == same(tree, after)
        operations = patch.diff(tree, after, lists)
        assert same(patch.apply(tree, operations), after)
        assert operations == patch.diff(plain, bare_after)
        tree, plain = after, bare_after


def test_what_is_no_text_in_a_list_of_texts_is_refused_however_long_it_is():
    lists = codec.Lists()
    tree = codec.flatten_model(Talk(said=["a"] * 100), None, lists)
    tree = codec.flatten_model(grown(tree, lists, "b"), tree, lists)
    for wrong in (1, None, ["a"]):
        with pytest.raises(CodecError, match=r"said\[101\]"):
            codec.flatten_model(grown(tree, lists, wrong), tree, lists)


def grown(tree: Any, lists: codec.Lists, item: Any) -> Talk:
    state = codec.renew_model(Talk, tree, lists)
    state.said.append(item)
    return state


def test_a_tree_that_is_not_the_one_it_was_made_with_is_looked_at_again():
    lists = codec.Lists()
    tree = codec.flatten_model(Talk(said=["a"] * 50), None, lists)
    other = {**tree, "said": tree["said"] + [{"$": "tuple", "v": ["b"]}]}
    assert lists.are_texts(tree["said"]) and not lists.are_texts(other["said"])
    state = codec.restore_model(Talk, {**other, "said": [], "mixed": other["said"]})
    assert state.mixed[-1] == ("b",)
    assert patch.diff(tree, other, lists) == [
        {"op": "add", "path": "/said/-", "value": {"$": "tuple", "v": ["b"]}}
    ]
