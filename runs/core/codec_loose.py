"""Reading what older code has stored: where a class is gone, or has changed, there is a dict of its fields."""

from __future__ import annotations

from typing import Any  # a stored value may be of any type

from runs.core.codec_restore import restore
from runs.core.codec_tree import MARK, Plain
from runs.core.errors import CodecError


def restore_loosely(tree: Plain) -> Any:
    """`restore`, but an instance that cannot be made becomes a dict of its fields, and a member of an enum its name.

    A set of such becomes a list. Raises CodecError for a form that is not known at all.
    """
    try:
        return restore(tree)
    except CodecError:
        if type(tree) is list:
            return [restore_loosely(item) for item in tree]
        if type(tree) is not dict:
            raise
        if MARK not in tree:
            return _fields(tree)
        match tree[MARK], tree.get("v"):
            case "model" | "dataclass", dict() as fields:
                return _fields(fields | (tree.get("extra") or {}))
            case "enum", member:
                return member
            case "tuple", list() as items:
                return tuple(restore_loosely(item) for item in items)
            case "set" | "frozenset", list() as items:
                return [restore_loosely(item) for item in items]
            case "dict", list() as pairs:
                return {restore_loosely(key): restore_loosely(item) for key, item in pairs}
        raise


def _fields(fields: dict[str, Plain]) -> dict[str, Any]:
    return {name: restore_loosely(item) for name, item in fields.items()}
