"""Plain tree -> typed value. Classes come from the allow-list only; nothing is imported, and no method of theirs is
called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # a stored value may be of any allowed type

from runs.core import codec_classes
from runs.core.codec_allow import class_named
from runs.core.codec_lists import Lists
from runs.core.codec_scalars import INTEGER, SCALARS, TEXT
from runs.core.codec_tree import LEAVES, MARK, Plain, Refusal, path_text, too_deep
from runs.core.errors import CodecError

MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def restore(tree: Plain, path: str = "$") -> Any:
    """The value that was flattened, in containers of its own. Raises CodecError naming the path."""
    try:
        return _restore(tree)
    except Refusal as refusal:
        raise refusal.error(path) from None
    except RecursionError:
        raise CodecError(path, too_deep().reason) from None


def restore_fields(tree: dict[str, Plain], lists: Lists | None = None) -> dict[str, Any]:
    """The same of a dict that is known to be no typed value: a state that was flattened here."""
    fields = tree.copy()
    for name, item in tree.items():
        if type(item) in LEAVES:
            continue
        if lists is not None and lists.are_texts(item):
            fields[name] = item[:]
        else:
            fields[name] = restore(item, path_text("$", [name]))
    return fields


def _restore(tree: Plain) -> Any:
    kind = type(tree)
    if kind is list:
        return _items(tree)
    if kind is dict:
        return _marked(tree) if MARK in tree else _fields(tree)
    if kind not in LEAVES:
        raise Refusal(f"is a {kind.__name__}, which no stored tree holds")
    return tree


def _items(tree: list[Plain]) -> list[Any]:
    if set(map(type, tree)) <= LEAVES:
        return tree[:]
    items: list[Any] = []
    try:
        for item in tree:
            items.append(_restore(item))
    except Refusal as refusal:
        raise refusal.inside(tree, len(items)) from None
    return items


def _fields(tree: dict[str, Plain]) -> dict[str, Any]:
    if set(map(type, tree.values())) <= LEAVES:
        return tree.copy()
    fields = {}
    try:
        for name, item in tree.items():
            fields[name] = _restore(item)
    except Refusal as refusal:
        raise refusal.inside(tree, name) from None
    return fields


def _marked(tree: dict[str, Plain]) -> Any:
    mark = tree[MARK]
    build = BUILDERS.get(mark) if type(mark) is str else None
    if build is None:
        raise Refusal(f"is stored as {mark!r}, a form that this version does not know")
    try:
        return build({name: part for name, part in tree.items() if name != MARK})
    except MALFORMED as error:
        raise Refusal(f"is stored as {mark!r}, but is not one: {type(error).__name__}: {error}") from None


def _pairs(parts: dict[str, Plain]) -> dict[Any, Any]:
    restored = {}
    for key, item in parts["v"]:
        key = _restore(key)
        try:
            restored[key] = _restore(item)
        except Refusal as refusal:
            raise refusal.inside(parts, key) from None
    return restored


def _instance(parts: dict[str, Plain], kind: str) -> Any:
    name = parts["c"]
    cls = class_named(name) if type(name) is str else None
    if cls is None or codec_classes.kind_of(cls) != kind:
        raise Refusal(
            f"names {name!r}, which is not an allowed {kind}; "
            "if it was moved or renamed, put it back or migrate the state, else decorate it with @storable"
        )
    held = {part: _fields(content) if type(content) is dict else content for part, content in parts.items()}
    return codec_classes.together(cls, held)


BUILDERS: dict[str, Callable[[dict[str, Plain]], Any]] = {
    "tuple": lambda parts: tuple(_items(parts["v"])),
    "set": lambda parts: set(_items(parts["v"])),
    "frozenset": lambda parts: frozenset(_items(parts["v"])),
    "dict": _pairs,
    "model": lambda parts: _instance(parts, "model"),
    "dataclass": lambda parts: _instance(parts, "dataclass"),
    "enum": lambda parts: _instance(parts, "enum"),
    **{scalar.name: scalar.together for scalar in (TEXT, INTEGER, *SCALARS.values())},
}
