"""Typed value -> plain tree, by exact type: what is not known to be plain or to have a typed form is refused.

A form is (value, like, depth) -> tree. `like` is the tree of the same place one step before; a form returns that very
object if nothing changed. Typed forms are dicts in which the mark `$` names the form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import chain, repeat
from math import isfinite
from operator import is_
from types import NoneType
from typing import Any  # the values are any objects: judging them is what this module does

from runs.core import codec_classes
from runs.core.codec_allow import name_of
from runs.core.codec_lists import Lists
from runs.core.codec_scalars import INTEGER, NOT_A_NUMBER, SCALARS, TEXT
from runs.core.codec_text import encode, survives
from runs.core.codec_tree import INT_LIMIT, LEAVES, MARK, MAX_DEPTH, Plain, Refusal, same, too_deep
from runs.core.errors import CodecError

Form = Callable[[Any, Plain, int], Plain]

TEXT_ONLY = {str}
MANY = 16  # items from which passes at C speed pay
NO_PARTS: dict[str, Plain] = {}


def flatten(value: Any, like: Plain = None, path: str = "$") -> Plain:
    """The plain tree of a value, in containers of its own.

    `like`: an earlier tree whose unchanged parts are returned as they are, so that a diff need only compare objects.
    It must share no container with `value`: a state comes from `restore(tree)`, never is the tree itself.
    Raises CodecError naming the path and what to do.
    """
    try:
        return FORMS.get(type(value), _instance)(value, like, 0)
    except Refusal as refusal:
        raise refusal.error(path) from None
    except RecursionError:
        raise CodecError(path, too_deep().reason) from None


def flatten_fields(
    values: dict[str, Any], like: Plain, depth: int, owner: object, lists: Lists | None = None
) -> Plain:
    """The named values of an object as one dict without a mark; `like` itself if nothing changed. `lists` learns which
    of them are long lists of texts."""
    if MARK in values:
        raise Refusal(f"has a field named {MARK!r}, which marks typed values; rename it")
    fields = {}
    old = like if type(like) is dict else NO_PARTS
    changed = old is not like
    try:
        for name, item in values.items():
            before, kind = old.get(name), type(item)
            if kind is list and lists is not None and len(item) >= MANY:
                tree = _long_list(item, before, lists)
            else:
                tree = FORMS.get(kind, _instance)(item, before, depth + 1)
            fields[name] = tree
            if tree is not before:
                changed = True
    except Refusal as refusal:
        raise refusal.inside(owner, name) from None
    return fields if changed or list(fields) != list(old) else like


def _long_list(value: list[Any], like: Plain, lists: Lists) -> Plain:
    """A list that is mostly as it was, or any other; `lists` is told if it holds texts only."""
    if lists.were_texts(like) and len(value) >= len(like) and all(map(is_, value, like)):
        rest = value[len(like) :]
        if not rest:
            lists.add(like)
            return like
        if all(type(item) is str for item in rest) and _all_plain(rest):
            tree = like + rest
            lists.add_grown(tree, like)
            return tree
    tree = _sequence(value, like, 1)
    if type(tree[0]) is type(tree[-1]) is str and set(map(type, tree)) == TEXT_ONLY:
        lists.add(tree)
    return tree


# Plain forms.


def _constant(value: bool | None, like: Plain, depth: int) -> Plain:
    return value


def _text(value: str, like: Plain, depth: int) -> Plain:
    if value is like:
        return value
    if value.isascii() or survives(value):
        return like if type(like) is str and like == value else value
    return _marked({MARK: TEXT.name, **TEXT.apart(value)}, like)


def _integer(value: int, like: Plain, depth: int) -> Plain:
    if -INT_LIMIT <= value < INT_LIMIT:
        return like if type(like) is int and like == value else value
    return _marked({MARK: INTEGER.name, **INTEGER.apart(value)}, like)


def _number(value: float, like: Plain, depth: int) -> Plain:
    if not isfinite(value):
        raise Refusal(NOT_A_NUMBER.format(value))
    return like if same(value, like) else value


def _sequence(value: list[Any], like: Plain, depth: int) -> Plain:
    if depth >= MAX_DEPTH:
        raise too_deep()
    known = type(like) is list
    old = like if known else []
    if all(map(is_, value, old)):  # leaves that did not change: only what was appended needs a look
        if len(value) <= len(old):
            return like if known and len(value) == len(old) else value[:]
        tree = old[:]
        rest = value[len(old) :]
    else:
        tree = []
        rest = value
    if _all_plain(rest):
        tree += rest
        return like if known and same(tree, like) else tree
    try:
        for item, before in zip(rest, chain(old[len(tree) :], repeat(None)), strict=False):
            tree.append(FORMS.get(type(item), _instance)(item, before, depth + 1))
    except Refusal as refusal:
        raise refusal.inside(value, len(tree)) from None
    return like if known and len(tree) == len(like) and all(map(is_, tree, like)) else tree


def _mapping(value: dict[Any, Any], like: Plain, depth: int) -> Plain:
    known = type(like) is dict and MARK not in like
    if known and len(value) == len(like) and all(map(is_, value.values(), like.values())):
        if all(map(is_, value, like)):
            return like
    if depth >= MAX_DEPTH:
        raise too_deep()
    if not _plain_keys(value):
        return _pairs(value, like, depth)
    if _all_plain(value.values()):
        return like if known and same(value, like) else value.copy()
    old = like if known else NO_PARTS
    tree = {}
    try:
        for key, item in value.items():
            tree[key] = FORMS.get(type(item), _instance)(item, old.get(key), depth + 1)
    except Refusal as refusal:
        raise refusal.inside(value, key) from None
    return like if known and _is_like(tree, like) else tree


def _all_plain(items: Collection[Any]) -> bool:
    """Whether all are leaves that mean themselves."""
    if len(items) >= MANY and set(map(type, items)) == TEXT_ONLY:  # at C speed: long lists are mostly texts
        return all(map(str.isascii, items)) or all(map(survives, items))
    for item in items:
        kind = type(item)
        if kind is str:
            if not item.isascii() and not survives(item):
                return False
        elif kind is int:
            if not -INT_LIMIT <= item < INT_LIMIT:
                return False
        elif kind is float:
            if not isfinite(item):
                return False
        elif kind not in LEAVES:
            return False
    return True


def _plain_keys(value: dict[Any, Any]) -> bool:
    for key in value:
        if type(key) is not str or not (key.isascii() or survives(key)):
            return False
    return MARK not in value


def _is_like(tree: dict[str, Plain], like: Plain) -> bool:
    """Whether a new dict holds just what `like` holds; its parts were flattened with those of `like`."""
    return type(like) is dict and all(map(is_, tree.values(), like.values())) and list(tree) == list(like)


# Typed forms.


def _marked(form: dict[str, Plain], like: Plain) -> Plain:
    """The form, or `like` if it is that: containers in it were flattened with those of `like`."""
    if type(like) is not dict or list(form) != list(like):
        return form
    unchanged = all(
        part is before or (type(part) in LEAVES and same(part, before))
        for part, before in zip(form.values(), like.values(), strict=True)
    )
    return like if unchanged else form


def _part(like: Plain, name: str = "v") -> Plain:
    return like.get(name) if type(like) is dict and MARK in like else None


def _scalar(value: Any, like: Plain, depth: int) -> Plain:
    scalar = SCALARS[type(value)]
    return _marked({MARK: scalar.name, **scalar.apart(value)}, like)


def _tuple(value: tuple[Any, ...], like: Plain, depth: int) -> Plain:
    return _marked({MARK: "tuple", "v": _sequence(list(value), _part(like), depth + 1)}, like)


def _set(value: Iterable[Any], like: Plain, depth: int) -> Plain:
    if depth + 1 >= MAX_DEPTH:
        raise too_deep()
    items = []
    try:
        for item in value:
            items.append(FORMS.get(type(item), _instance)(item, None, depth + 2))
    except Refusal as refusal:
        raise refusal.inside(value, item) from None
    items.sort(key=lambda tree: encode(tree, sort=True))  # a set has no order, a canonical form has one
    old = _part(like)
    return _marked({MARK: type(value).__name__, "v": old if same(items, old) else items}, like)


def _pairs(value: dict[Any, Any], like: Plain, depth: int) -> Plain:
    """A dict whose keys are not all plain texts, or that holds the mark: a list of [key, value]."""
    if depth + 2 >= MAX_DEPTH:
        raise too_deep()
    pairs: list[Plain] = []
    try:
        for key, item in value.items():
            key_tree = FORMS.get(type(key), _instance)(key, None, depth + 3)
            pairs.append([key_tree, FORMS.get(type(item), _instance)(item, None, depth + 3)])
    except Refusal as refusal:
        raise refusal.inside(value, key) from None
    old = _part(like)
    return _marked({MARK: "dict", "v": old if same(pairs, old) else pairs}, like)


def _instance(value: Any, like: Plain, depth: int) -> Plain:
    cls = type(value)
    name = name_of(cls)
    if name is None:
        raise Refusal(codec_classes.remedy(cls))
    if depth + 1 >= MAX_DEPTH:
        raise too_deep()
    form = {MARK: codec_classes.kind_of(cls), "c": name, **codec_classes.apart(value)}
    for part, content in form.items():
        if type(content) is dict:
            form[part] = flatten_fields(content, _part(like, part), depth + 1, value)
    return _marked(form, like)


FORMS: dict[type, Form] = {
    NoneType: _constant,
    bool: _constant,
    str: _text,
    int: _integer,
    float: _number,
    list: _sequence,
    dict: _mapping,
    tuple: _tuple,
    set: _set,
    frozenset: _set,
    **dict.fromkeys(SCALARS, _scalar),
}
