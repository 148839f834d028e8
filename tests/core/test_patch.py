from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core.codec import encode, flatten, restore
from runs.core.codec_tree import own_copy, same
from runs.core.errors import CodecError
from runs.core.patch import LEAST_WEIGHT, SNAPSHOT_FACTOR, apply, apply_all, diff, snapshot_due, weight
from tests.amounts import examples
from tests.core.values import TREES

PATIENT = settings(deadline=None, max_examples=examples(300))
SMALL = st.sampled_from([0, 1, True, 0.0, -0.0, 1.0, None, "a", "b", [], {}, [1], {"a": 1}])
KEYS = st.sampled_from(["a", "b", "c", "", "-", "0", "a/b", "~", "~1", "\x00", "\ud800"])


@PATIENT
@given(TREES, TREES)
def test_the_patch_of_any_two_trees_makes_the_second_of_the_first(old, new):
    before = own_copy(old)
    ops = diff(old, new)
    assert same(apply(old, ops), new)
    assert same(old, before)
    assert (ops == []) == same(old, new)


@PATIENT
@given(
    st.dictionaries(KEYS, SMALL),
    st.permutations(list(range(4))).flatmap(lambda _: st.dictionaries(KEYS, SMALL)),
)
def test_the_order_of_keys_is_that_of_the_second(old, new):
    patched = apply({"at": old}, diff({"at": old}, {"at": new}))
    assert list(patched["at"]) == list(new)
    assert same(patched, {"at": new})


@PATIENT
@given(st.lists(SMALL, max_size=12), st.lists(SMALL, max_size=12))
def test_lists_with_repeated_items_are_patched(old, new):
    assert same(apply({"xs": old}, diff({"xs": old}, {"xs": new})), {"xs": new})


@PATIENT
@given(TREES, TREES)
def test_a_patch_is_never_longer_than_replacing_all(old, new):
    assert len(encode(diff(old, new))) <= len(encode([{"op": "replace", "path": "", "value": new}]))


@PATIENT
@given(st.lists(TREES, min_size=1, max_size=5))
def test_patches_in_a_row_lead_to_the_last_tree(trees):
    patches = [diff(old, new) for old, new in zip(trees, trees[1:], strict=False)]
    kept = own_copy(patches)
    assert same(apply_all(trees[0], patches), trees[-1])
    assert same(patches, kept)


def test_a_grown_list_stores_one_item():
    old = flatten({"xs": [{"n": n} for n in range(100)], "other": "x"})
    value = restore(old)
    value["xs"].append({"n": 100})
    assert diff(old, flatten(value, like=old)) == [{"op": "add", "path": "/xs/-", "value": {"n": 100}}]


LONG = [f"item {n} of a long list" for n in range(40)]


@pytest.mark.parametrize(
    ("new", "ops"),
    [
        ([*LONG, "a", "b"], [("add", "/xs/-", "a"), ("add", "/xs/-", "b")]),
        (["a", *LONG], [("add", "/xs/0", "a")]),
        ([*LONG[:7], "a", *LONG[7:]], [("add", "/xs/7", "a")]),
        ([*LONG[:7], *LONG[9:]], [("remove", "/xs/7"), ("remove", "/xs/7")]),
        ([*LONG[:7], "a", *LONG[8:]], [("replace", "/xs/7", "a")]),
        (LONG[:-1], [("remove", "/xs/39")]),
        ([*LONG[1:], "a"], [("remove", "/xs/0"), ("add", "/xs/-", "a")]),
        (
            [*LONG[2:20], "a", *LONG[20:], "b"],
            [("remove", "/xs/0")] * 2 + [("add", "/xs/18", "a"), ("add", "/xs/-", "b")],
        ),
        ([], [("replace", "/xs", [])]),
    ],
    ids=[
        "append",
        "prepend",
        "insert",
        "remove two",
        "replace one",
        "pop",
        "slide",
        "slide and insert",
        "clear",
    ],
)
def test_a_change_of_a_long_list_stores_what_changed(new, ops):
    made = [tuple(op.values()) for op in diff({"xs": LONG}, {"xs": new})]
    assert made == ops


@PATIENT
@given(st.lists(st.sampled_from(LONG[:8]), unique=True), st.lists(st.sampled_from(LONG[:8]), unique=True))
def test_long_items_that_changed_places_are_patched(old, new):
    assert same(apply({"xs": LONG + old}, diff({"xs": LONG + old}, {"xs": LONG + new})), {"xs": LONG + new})


def test_an_item_that_moved_stores_itself_alone():
    moved = [*LONG[:5], *LONG[6:30], LONG[5], *LONG[30:]]
    assert diff({"xs": LONG}, {"xs": moved}) == [
        {"op": "remove", "path": "/xs/5"},
        {"op": "add", "path": "/xs/29", "value": LONG[5]},
    ]


def test_a_change_deep_inside_names_its_place():
    old = {"a/b": {"~": [0, {"long": "text" * 20, "n": 1}]}}
    new = {"a/b": {"~": [0, {"long": "text" * 20, "n": True}]}}
    assert diff(old, new) == [{"op": "replace", "path": "/a~1b/~0/1/n", "value": True}]


def test_the_deepest_tree_that_can_be_stored_can_be_patched():
    def deep(core):
        for _ in range(100):
            core = [{"a": core}]
        return flatten(core[0])

    for old, new in ((deep(1), deep(2)), ({}, deep(1)), (deep("x" * 500), deep("y" * 500))):
        assert same(apply(old, diff(old, new)), new)


def test_a_container_whose_patch_would_be_longer_is_replaced():
    old = {"keep": "x" * 200, "grid": {f"key {n}": n for n in range(20)}}
    new = {"keep": "x" * 200, "grid": {f"key {n}": n + 1 for n in range(20)}}
    assert diff(old, new) == [{"op": "replace", "path": "/grid", "value": new["grid"]}]


def test_a_patch_shares_nothing_with_the_tree_that_it_made():
    ops = [{"op": "add", "path": "/xs", "value": []}]
    made = apply_all({}, [ops, [{"op": "add", "path": "/xs/-", "value": 1}]])
    made["xs"].append(2)
    assert ops[0]["value"] == []


@pytest.mark.parametrize(
    "ops",
    [
        [{"op": "remove", "path": "/gone"}],
        [{"op": "replace", "path": "/xs/9", "value": 1}],
        [{"op": "add", "path": "/xs/a/b", "value": 1}],
        [{"op": "no such", "path": ""}],
        [{"op": "add", "path": "no pointer", "value": 1}],
        [{"path": "/xs"}],
        [1],
    ],
    ids=str,
)
def test_a_patch_that_does_not_fit_is_a_typed_error(ops):
    """D5"""
    with pytest.raises(CodecError, match="patch does not fit"):
        apply({"xs": [1]}, ops)


def test_a_snapshot_is_due_when_the_patches_outweigh_the_last_one():
    assert weight(10) == LEAST_WEIGHT
    assert weight(2_000) == 2_000
    assert not snapshot_due(3_000, 1_000, 1_000)
    assert snapshot_due(3_000, 1_001, 1_000)
    assert snapshot_due(0, 1, 100)
    assert not snapshot_due(0, 1, 128)


@pytest.mark.parametrize("start", [0, 300, 1_200, 3_000, 20_000, 60_000])
def test_a_thousand_steps_of_one_kilobyte_store_near_what_was_added_and_load_is_bounded(start):
    """D6, of the texts alone: the sum is of the bytes of all snapshots and patches, whatever a row adds to them."""
    tree = flatten({"messages": ["s" * start]})
    snapshot_bytes = stored = len(encode(tree))
    weights = 0
    since: list[list[dict]] = []
    snapshot = tree
    for step in range(1_000):
        state = restore(tree)
        state["messages"].append(f"{step:04}" + "m" * 1_020)
        new = flatten(state, like=tree)
        ops = diff(tree, new)
        tree = new
        patch_bytes = len(encode(ops))
        if snapshot_due(weights, patch_bytes, snapshot_bytes):
            snapshot, since, weights = tree, [], 0
            snapshot_bytes = len(encode(tree))
            stored += snapshot_bytes
        else:
            since.append(ops)
            weights += weight(patch_bytes)
            stored += patch_bytes
        assert weights <= SNAPSHOT_FACTOR * snapshot_bytes
    added = 1_000 * 1_024 + start
    assert stored < 2.4 * added
    assert stored < 2_500_000
    assert same(apply_all(snapshot, since), tree)


def test_a_thousand_small_changes_of_a_small_state_never_replay_more_than_a_bounded_number():
    tree = flatten({"n": 0, "text": "x" * 5_000})
    snapshot_bytes = len(encode(tree))
    weights = longest = count = 0
    for n in range(1, 1_001):
        new = flatten({"n": n, "text": tree["text"]}, like=tree)
        patch_bytes = len(encode(diff(tree, new)))
        tree = new
        if snapshot_due(weights, patch_bytes, snapshot_bytes):
            weights = count = 0
        else:
            weights += weight(patch_bytes)
            count += 1
        longest = max(longest, count)
    assert 0 < longest <= SNAPSHOT_FACTOR * snapshot_bytes / LEAST_WEIGHT
