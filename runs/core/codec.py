"""Canonical typed JSON: value <-> plain tree <-> text.

    value  --flatten-->  plain tree  --encode-->  text  --digest-->  sha256
    value  <--restore--  plain tree  <--decode--  text

A plain tree holds only dict, list, str, 64-bit int, finite float, bool and None; everything else that may be stored is
a dict with the mark `$`, such as `{"$": "decimal", "v": "1.10"}`. What has no form is refused when it is written,
naming the path and the remedy, so that reading never fails and never changes a type.
"""

from __future__ import annotations

from typing import Any, TypeVar  # any value: judging it is the codec's work

from pydantic import BaseModel, RootModel, ValidationError

from runs.core.codec_allow import allow, allow_annotations, storable
from runs.core.codec_classes import apart, field_names, is_only_fields, plain_kinds
from runs.core.codec_flatten import flatten, flatten_fields
from runs.core.codec_lists import Lists
from runs.core.codec_refs import BlobRef, SecretRef
from runs.core.codec_restore import restore, restore_fields
from runs.core.codec_text import decode, digest, encode
from runs.core.codec_tree import MARK, Plain, Refusal, path_text
from runs.core.errors import CodecError

__all__ = [
    "BlobRef",
    "Lists",
    "Plain",
    "SecretRef",
    "allow",
    "allow_annotations",
    "decode",
    "digest",
    "dumps",
    "encode",
    "flatten",
    "flatten_model",
    "loads",
    "renew_model",
    "restore",
    "restore_model",
    "storable",
]

M = TypeVar("M", bound=BaseModel)


def dumps(value: Any, sort: bool = True) -> str:
    """The canonical text of a value; raises CodecError naming the path."""
    return encode(flatten(value), sort)


def loads(text: str | bytes) -> Any:
    """The value of a canonical text; raises CodecError naming the path."""
    return restore(decode(text))


def flatten_model(model: BaseModel, like: Plain = None, lists: Lists | None = None) -> dict[str, Plain]:
    """A graph's state as {field: tree}, extra fields included; `like` itself if nothing changed.

    What changed is validated too, since a state that does not fit its model could be stored but never read again.
    `lists` keeps from step to step what is known of long lists. Raises CodecError naming the path.
    """
    if lists is not None:
        lists.turn()
    try:
        values = vars(model)
        cls = type(model)
        if model.__pydantic_extra__ or tuple(values) != field_names(cls):
            parts = apart(model)
            values = parts["v"] | parts.get("extra", {})
        tree = flatten_fields(values, like, 0, model, lists)
    except Refusal as refusal:
        raise refusal.error("$") from None
    except RecursionError:
        raise CodecError("$", "is nested too deep to be stored") from None
    if tree is not like and not _surely_fits(cls, values, tree, like, lists):
        _validate(cls, values)
    return tree


def _surely_fits(
    cls: type[BaseModel],
    values: dict[str, Any],
    tree: dict[str, Plain],
    like: Plain,
    lists: Lists | None,
) -> bool:
    """Whether each field that changed since `like`, which was valid, is of just the plain type it is declared with."""
    if type(like) is not dict or len(tree) != len(like):
        return False
    kinds = plain_kinds(cls)
    for name, before in like.items():
        if (part := tree.get(name)) is before or type(values.get(name)) is (kind := kinds.get(name)):
            continue
        if kind != list[str] or lists is None or not lists.are_texts(part):
            return False
    return True


def restore_model(cls: type[M], tree: Plain) -> M:
    """The validated state, its stored values kept exactly as they are. Raises CodecError naming the path."""
    if type(tree) is not dict or MARK in tree:
        raise CodecError("$", f"is no stored state of {cls.__name__}")
    values = restore(tree)
    names = field_names(cls)
    unknown = [name for name in values if name not in names]
    if unknown and cls.model_config.get("extra") != "allow":
        reason = f"is no field of {cls.__name__}; put it back, or raise the graph's version and migrate"
        raise CodecError(path_text("$", unknown[:1]), reason)
    model = _validate(cls, values)
    # Validation may convert: a list given to a set field, an int to a float field. What was stored is the truth.
    held = vars(model)
    for name in names:
        if name in values:
            held[name] = values[name]
    if model.model_extra is not None:
        model.model_extra.update((name, values[name]) for name in unknown)
    return model


def renew_model(cls: type[M], tree: Plain, lists: Lists | None = None) -> M:
    """What `restore_model` makes, of a tree that `flatten_model` made in this process, where validation is known.

    A class with validators or private attributes of its own is validated all the same: they may do more.
    """
    if not is_only_fields(cls):
        return restore_model(cls, tree)
    values = restore_fields(tree, lists)
    model = cls.__new__(cls)
    object.__setattr__(model, "__dict__", values)
    object.__setattr__(model, "__pydantic_fields_set__", set(values))
    object.__setattr__(model, "__pydantic_extra__", None)
    object.__setattr__(model, "__pydantic_private__", None)
    return model


def _validate(cls: type[M], values: dict[str, Any]) -> M:
    given = values["root"] if issubclass(cls, RootModel) and "root" in values else values
    try:
        return cls.__pydantic_validator__.validate_python(given, by_name=True, by_alias=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        reason = f"{first['msg']}; a {cls.__name__} cannot hold it{more}"
        raise CodecError(path_text("$", list(first["loc"])), reason) from None
