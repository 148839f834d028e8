"""What changed between two plain trees, as an RFC 6902 patch; and when a snapshot is due instead.

Made here because no library notices that a list grew, keeps the order of keys, or passes by what is the same object.
Applied by the jsonpatch library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any  # an operation's value is any plain tree

import jsonpatch
import jsonpointer

from runs.core.codec_lists import NOTHING, Lists
from runs.core.codec_text import encode
from runs.core.codec_tree import LEAVES, Plain, common_prefix, own_copy, same
from runs.core.errors import CodecError

Op = dict[str, Any]

SNAPSHOT_FACTOR = 4  # so storage stays near what was added, and what a load replays near four snapshots
LEAST_WEIGHT = 512  # bytes that a patch weighs at least: each one costs a load its time


def diff(old: Plain, new: Plain, lists: Lists = NOTHING) -> list[Op]:
    """The operations that turn `old` into `new`, strictly: types and the order of keys included.

    Fast where `new` shares its unchanged parts with `old` (see flatten's `like`), faster with what `lists` knows.
    """
    return _compare(old, new, "", lists)


def apply(tree: Plain, ops: list[Op]) -> Plain:
    """The patched tree; neither argument changes. Raises CodecError if the patch does not fit the tree."""
    return apply_all(tree, [ops])


def apply_all(tree: Plain, patches: Iterable[list[Op]]) -> Plain:
    """The tree after many patches in a row, on one copy."""
    patched = own_copy(tree)
    for ops in patches:
        try:
            patched = jsonpatch.JsonPatch(ops).apply(patched, in_place=True)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
            raise CodecError("$", f"a stored patch does not fit the state before it: {error}") from None
    return patched


def weight(patch_bytes: int) -> int:
    """What a patch of that size counts in the sum since the last snapshot."""
    return max(patch_bytes, LEAST_WEIGHT)


def snapshot_due(patches_weight: int, patch_bytes: int, snapshot_bytes: int) -> bool:
    """Whether to store a snapshot in place of the next patch.

    `patches_weight`: the weights, summed, of the patches since the last snapshot; `snapshot_bytes`: its size.
    """
    return patches_weight + weight(patch_bytes) > SNAPSHOT_FACTOR * snapshot_bytes


def _compare(old: Plain, new: Plain, path: str, lists: Lists = NOTHING) -> list[Op]:
    if old is new:
        return []
    kind = type(new)
    if kind is not type(old) or kind in LEAVES:
        return [] if same(old, new) else [_replace(path, new)]
    ops = _compare_dicts(old, new, path, lists) if kind is dict else _compare_lists(old, new, path, lists)
    if len(ops) == 1 and ops[0]["op"] != "remove" and "~" not in ops[0]["path"]:
        return ops  # to replace the container would say the same item, and each name of its path, and more
    return [_replace(path, new)] if ops and _outweighs(ops, new, path) else ops


def _compare_dicts(old: dict[str, Plain], new: dict[str, Plain], path: str, lists: Lists) -> list[Op]:
    """Keys that stand in their old order stay; from the first that does not, all are taken out and added at the end,
    where `add` puts them."""
    ops: list[Op] = []
    if [*old] == [*new]:
        for key, item in new.items():
            if item is not (before := old[key]):
                ops += _compare(before, item, _at(path, key), lists)
        return ops
    places = {key: place for place, key in enumerate(old)}
    staying: list[str] = []
    last = -1
    for key in new:
        if places.get(key, -1) <= last:
            break
        staying.append(key)
        last = places[key]
    kept = set(staying)
    ops += [{"op": "remove", "path": _at(path, key)} for key in old if key not in kept]
    for key, item in new.items():
        if key not in kept:
            ops.append({"op": "add", "path": _at(path, key), "value": item})
        elif item is not old[key]:
            ops += _compare(old[key], item, _at(path, key), lists)
    return ops


def _compare_lists(old: list[Plain], new: list[Plain], path: str, lists: Lists) -> list[Op]:
    start = len(old) if lists.begins_with(new, old) else common_prefix(old, new)
    if start == len(old):  # it only grew
        return [{"op": "add", "path": f"{path}/-", "value": item} for item in new[start:]]
    return list(_compare_rest(old, new, path, start))


def _compare_rest(old: list[Plain], new: list[Plain], path: str, start: int) -> Iterator[Op]:
    end = common_prefix(old[start:][::-1], new[start:][::-1])
    old = old[start : len(old) - end]
    new = new[start : len(new) - end]
    at = start  # the index in the list as patched so far; all before it is final
    old_done = new_done = 0
    for old_anchor, new_anchor in [*_anchors(old, new), (len(old), len(new))]:
        before = old[old_done:old_anchor]
        after = new[new_done:new_anchor]
        for old_item, new_item in zip(before, after, strict=False):
            yield from _compare(old_item, new_item, f"{path}/{at}")
            at += 1
        for _ in before[len(after) :]:
            yield {"op": "remove", "path": f"{path}/{at}"}
        at_end = old_anchor == len(old) and not end
        for item in after[len(before) :]:
            yield {"op": "add", "path": f"{path}/-" if at_end else f"{path}/{at}", "value": item}
            at += 1
        at += 1  # the anchor itself
        old_done = old_anchor + 1
        new_done = new_anchor + 1


def _anchors(old: list[Plain], new: list[Plain]) -> list[tuple[int, int]]:
    """Pairs of places of items that occur once in both lists, in rising order in both (as in a patience diff): a
    window that slides over messages keeps those that it still holds."""
    if not old or not new or len(old) == len(new) == 1:
        return []
    old_texts = [encode(item) for item in old]
    new_texts = [encode(item) for item in new]
    old_counts = Counter(old_texts)
    new_counts = Counter(new_texts)
    new_places = {text: place for place, text in enumerate(new_texts) if new_counts[text] == 1}
    pairs = [
        (place, new_places[text])
        for place, text in enumerate(old_texts)
        if old_counts[text] == 1 and text in new_places
    ]
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs whose second parts rise; their first parts do already."""
    tails: list[int] = []  # the least second part that ends a run of each length
    ends: list[int] = []  # its index in pairs
    before: list[int] = []  # for each pair, the index of the one before it in its run
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        before.append(ends[length - 1] if length else -1)
        tails[length:] = [place, *tails[length + 1 :]]
        ends[length:] = [index, *ends[length + 1 :]]
    run = []
    index = ends[-1] if ends else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]


def _outweighs(ops: list[Op], new: Plain, path: str) -> bool:
    """Whether the operations' text is longer than that of replacing the container."""
    limit = len(encode(ops))
    return _shorter_than(limit, new) and len(encode([_replace(path, new)])) < limit


def _shorter_than(limit: int, tree: Plain) -> bool:
    """False if the tree's text surely reaches the limit; looks no further than needed, since states are large and
    patches small."""
    size = 0
    waiting = [iter((tree,))]
    while waiting:
        for node in waiting[-1]:
            if type(node) is str:
                size += len(node) + 2
            elif type(node) is list or type(node) is dict:
                size += 2 * len(node)
                waiting.append(iter(node.values() if type(node) is dict else node))
                break
            if size >= limit:
                return False
        else:
            waiting.pop()
    return True


def _replace(path: str, new: Plain) -> Op:
    return {"op": "replace", "path": path, "value": new}


def _at(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
