"""Plain trees, the stored form of every value: dict with str keys, list, str, 64-bit int, finite float, bool, None.

Types are exact, subclasses excluded. A dict that holds the mark `$` is a typed value; everything else means itself.
Leaves are immutable and may be shared between trees; containers of a tree belong to it alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count
from math import copysign
from operator import is_, is_not
from types import NoneType
from typing import Any

from runs.core.errors import CodecError

Plain = Any  # a plain tree; its recursive type would say less than this module's docstring

MARK = "$"
LEAVES = frozenset({str, int, float, bool, NoneType})
MAX_DEPTH = 200
INT_LIMIT = 2**63  # plain ints are -INT_LIMIT <= n < INT_LIMIT
STEPS_SHOWN = 12


def same(a: Plain, b: Plain) -> bool:
    """Strict equality: 1, True and 1.0 differ, so do 0.0 and -0.0, and so does another order of keys."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is dict:
        return len(a) == len(b) and list(a) == list(b) and all(map(same, a.values(), b.values()))
    if kind is list:
        return len(a) == len(b) and common_prefix(a, b) == len(a)
    if kind is float:
        return a == b and copysign(1, a) == copysign(1, b)
    return a == b


def common_prefix(a: list[Plain], b: list[Plain]) -> int:
    """How many items at the start of both are the same; what is shared is passed at C speed."""
    if all(map(is_, a, b)):
        return min(len(a), len(b))
    for index in compress(count(), map(is_not, a, b)):
        if not same(a[index], b[index]):
            return index
    return min(len(a), len(b))


def own_copy(tree: Plain) -> Plain:
    """A copy with containers of its own and shared leaves."""
    if type(tree) is dict:
        return {key: own_copy(item) for key, item in tree.items()}
    if type(tree) is list:
        return [own_copy(item) for item in tree]
    return tree


def children(tree: Plain) -> Iterator[tuple[list[object], Plain]]:
    """Each child as (steps, child), in the steps by which an author knows it: the stored shape of a typed value is
    left out, and the keys of a dict come as children too."""
    if type(tree) is list:
        yield from (([index], item) for index, item in enumerate(tree))
    elif type(tree) is dict and MARK not in tree:
        for key, item in tree.items():
            yield [key], key
            yield [key], item
    elif type(tree) is dict and tree[MARK] == "dict":
        for key, item in tree["v"]:
            shown = key if type(key) in LEAVES else "…"
            yield [shown], key
            yield [shown], item
    elif type(tree) is dict:
        yield from (([], part) for name, part in tree.items() if name not in (MARK, "c"))


def path_text(root: str, steps: list[object]) -> str:
    """`$.findings['a b'][3]`; a very long path is cut."""
    shown = "".join(map(_step_text, steps[:STEPS_SHOWN]))
    return root + shown + ("…" if len(steps) > STEPS_SHOWN else "")


def _step_text(step: object) -> str:
    if type(step) is str and step.isidentifier():
        return f".{step}"
    if type(step) in LEAVES and not (
        type(step) is int and abs(step) >= INT_LIMIT
    ):  # its digits may be too many
        text = repr(step)
        return f"[{text if len(text) <= 60 else text[:57] + '…'}]"
    return f"[{type(step).__name__}]"


class Refusal(Exception):
    """A value that cannot pass. On its way up each container adds the step that led to it, so that no path is kept
    while all is well."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trail: list[tuple[object, int]] = []  # innermost first: the step, and the id of the container

    def inside(self, container: object, step: object) -> Refusal:
        self.trail.append((step, id(container)))
        return self

    def error(self, root: str) -> CodecError:
        trail = self.trail[::-1]
        seen: set[int] = set()
        for length, (_, container) in enumerate(trail):
            if container in seen:
                steps = [step for step, _ in trail[:length]]
                return CodecError(
                    path_text(root, steps), "contains itself; store an id instead of the object"
                )
            seen.add(container)
        return CodecError(path_text(root, [step for step, _ in trail]), self.reason)


def too_deep() -> Refusal:
    return Refusal(f"is nested deeper than {MAX_DEPTH} levels; flatten it, or keep it in a blob (run.blob)")
