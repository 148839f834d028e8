"""Classes that may be stored, and states as models."""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
from typing import Annotated, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from runs.core import codec
from runs.core.errors import CodecError
from tests.core.values import (
    Colour,
    Note,
    exactly,
    refusal,
)

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
    for cls in (dict, object, collections.namedtuple("Row", "a b")):
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
