"""Migrations as functions: declared, followed from version to version, and what they may not return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import pytest
from pydantic import BaseModel

from runs.core import codec, codec_allow
from runs.core.codec_loose import restore_loosely
from runs.core.errors import CodecError, GraphError, Permanent
from runs.core.graph import Graph
from runs.core.migration import migrated, path, route


class Order(BaseModel):
    number: str
    lines: list[str] = []


def graph(version: int = 3, state: type[BaseModel] | None = None) -> Graph:
    made = Graph("order", version=version, state=state)

    @made.node(then="pack")
    def check(run, state): ...

    @made.node
    def pack(run, state): ...

    return made


def test_each_migration_leads_to_where_the_next_one_begins_and_the_last_to_the_graphs_own_version():
    """R7: 1 -> 2 -> 3."""
    third = graph(3)

    @third.migrate(2)
    def from_second(state, node):
        return state | {"seen": [*state["seen"], 2]}, "pack" if node == "review" else node

    @third.migrate(1)
    def from_first(state, node):
        return {"seen": [1]}, "review"

    assert [step.source for step in path(third, 1)] == [1, 2]
    assert (route(third, 1), route(third, 2)) == ("1 -> 2 -> 3", "2 -> 3")
    assert migrated(third, 1, {"old": True}, "begin") == ({"seen": [1, 2]}, "pack")
    assert path(third, 3) == []


def test_a_state_gets_its_new_model_and_typed_values_keep_their_type():
    second = graph(2, Order)

    @second.migrate(1)
    def from_first(state, node):
        assert state["at"] == datetime(2026, 1, 5, tzinfo=UTC)
        return {"number": state["id"], "lines": [state["line"]]}, "check"

    tree = codec.flatten({"id": "A-17", "line": "tea", "at": datetime(2026, 1, 5, tzinfo=UTC)})
    assert migrated(second, 1, tree, "ask") == ({"number": "A-17", "lines": ["tea"]}, "check")


def test_a_state_that_does_not_fit_the_model_names_what_is_wrong():
    second = graph(2, Order)
    second.migrate(1)(lambda state, node: (state, "check"))
    with pytest.raises(CodecError, match="number"):
        migrated(second, 1, {"id": "A-17"}, "check")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (({}, "gone"), "leads to node 'gone'; version 2 has check, pack"),
        ({}, r"returned dict; expected \(state, node\)"),
        (({}, None), r"returned tuple; expected \(state, node\)"),
    ],
)
def test_what_a_migration_may_not_return_is_said_with_its_place(returned, said):
    second = graph(2)
    second.migrate(1)(lambda state, node: returned)
    with pytest.raises(Permanent, match=f"test_migration.py, '<lambda>': {said}"):
        migrated(second, 1, {}, "check")


async def later(state, node): ...


def test_a_migration_that_makes_no_sense_is_refused_when_it_is_declared():
    second = graph(2)
    second.migrate(1)(lambda state, node: (state, node))
    for source, fn in ((1, lambda state, node: None), (2, lambda state, node: None), (0, lambda s, n: None)):
        with pytest.raises(GraphError, match=r"test_migration\.py.*graph 'order'"):
            second.migrate(source)(fn)
    for fn in (lambda state: None, later):
        with pytest.raises(GraphError, match="plain function of exactly"):
            graph(2).migrate(1)(fn)


def test_values_whose_class_is_gone_are_read_as_dicts_of_their_fields():
    @dataclass(frozen=True)
    class Parcel:
        weight: int

    class Size(Enum):
        SMALL = "s"

    class Vendor(BaseModel):
        name: str
        parcels: list[Parcel]

    kept = {Parcel: None, Size: None, Vendor: None}
    for cls in kept:
        codec_allow.storable(cls)
    value = {
        "vendor": Vendor(name="x", parcels=[Parcel(1)]),
        "sizes": (Size.SMALL, 2),
        "set": {Parcel(2)},
        "by": {1: Parcel(3)},
        "n": 2**70,
    }
    tree = codec.flatten(value)
    assert restore_loosely(tree) == value
    for cls in kept:
        del codec_allow._by_name[codec_allow._names.pop(cls)]
    with pytest.raises(CodecError):
        codec.restore(tree)
    assert restore_loosely(tree) == {
        "vendor": {"name": "x", "parcels": [{"weight": 1}]},
        "sizes": ("SMALL", 2),
        "set": [{"weight": 2}],
        "by": {1: {"weight": 3}},
        "n": 2**70,
    }
    with pytest.raises(CodecError):
        restore_loosely([{"$": "unheard of", "v": 1}])
