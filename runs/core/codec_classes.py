"""Instances of allowed classes: taken apart into named parts, and put together without calling any of their code.

`v` holds the fields. If there are any, `extra` holds what was set beside them, `private` pydantic's private attributes,
and `unset` the names of pydantic fields that nobody set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from enum import Enum, Flag
from functools import cached_property, lru_cache
from typing import Any  # instances of any allowed class

from pydantic import BaseModel

from runs.core.codec_allow import is_storable_kind
from runs.core.codec_tree import Refusal

Parts = dict[str, Any]

# What to write instead of a class that has no stored form.
PLAINER = {
    "OrderedDict": "dict(...)",
    "defaultdict": "dict(...)",
    "Counter": "dict(...)",
    "deque": "list(...)",
    "bytearray": "bytes(...)",
    "memoryview": "bytes(...)",
}


def kind_of(cls: type) -> str:
    """The mark under which instances of an allowed class are stored."""
    if issubclass(cls, Enum):
        return "enum"
    return "model" if issubclass(cls, BaseModel) else "dataclass"


def apart(value: Any) -> Parts:
    """The parts of an instance of an allowed class; each dict among them holds values still to be flattened."""
    if isinstance(value, Enum):
        return {"v": value.value if isinstance(value, Flag) else value.name}
    return _model_apart(value) if isinstance(value, BaseModel) else _dataclass_apart(value)


def together(cls: type, parts: Parts) -> Any:
    """The instance again, equal in value and type; raises Refusal if the class has other fields by now."""
    if issubclass(cls, Enum):
        return _member(cls, parts["v"])
    _refuse_unknown(cls, parts["v"], field_names(cls))
    return _model_together(cls, parts) if issubclass(cls, BaseModel) else _dataclass_together(cls, parts)


@lru_cache(maxsize=4096)
def field_names(cls: type) -> tuple[str, ...]:
    if issubclass(cls, BaseModel):
        return tuple(cls.model_fields)
    return tuple(field.name for field in dataclasses.fields(cls))


@lru_cache(maxsize=1024)
def is_only_fields(cls: type[BaseModel]) -> bool:
    """Whether making an instance does nothing beyond setting its fields."""
    own = cls.__pydantic_decorators__
    validators = (own.validators, own.field_validators, own.root_validators, own.model_validators)
    return (
        not any(validators)
        and not cls.__private_attributes__
        and not cls.__pydantic_root_model__
        and cls.model_post_init is BaseModel.model_post_init
        and cls.__init__ is BaseModel.__init__
        and cls.model_config.get("extra") != "allow"
    )


@lru_cache(maxsize=1024)
def plain_kinds(cls: type[BaseModel]) -> dict[str, type]:
    """The fields declared as a plain type, or as a list of texts, and nothing more: a value of exactly that type fits.
    Empty for a class that does more than set its fields."""
    if not is_only_fields(cls) or any(option.startswith("str_") for option in cls.model_config):
        return {}
    return {
        name: field.annotation
        for name, field in cls.model_fields.items()
        if field.annotation in (str, int, bool, float, list[str]) and not field.metadata
    }


def remedy(cls: type) -> str:
    """Why an instance of this class is refused, and what to store instead."""
    if is_storable_kind(cls):
        return f"is a {title(cls)}, which is not allowed; decorate it with @storable, or name it in an annotation"
    if cls.__name__ in PLAINER:
        return f"is a {title(cls)}, which has no stored form; make it plain with {PLAINER[cls.__name__]}"
    for base in (str, int, float, dict, list, tuple, set, frozenset, bytes):
        if issubclass(cls, base):
            return f"is a {title(cls)}, whose type would be lost; make it plain with {base.__name__}(...)"
    return f"is a {title(cls)}, which has no stored form; store plain values, or a dataclass decorated with @storable"


def title(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _member(cls: type[Enum], stored: Any) -> Enum:
    if issubclass(cls, Flag):
        return cls(stored)
    if stored not in cls.__members__:
        raise Refusal(f"names {stored!r}, which {title(cls)} does not have; migrate the state")
    return cls.__members__[stored]


def _refuse_unknown(cls: type, stored: Parts, known: Collection[str]) -> None:
    if unknown := [name for name in stored if name not in known]:
        raise Refusal(f"names the field {unknown[0]!r}, which {title(cls)} does not have; migrate the state")


def _model_apart(model: BaseModel) -> Parts:
    names = field_names(type(model))
    parts: Parts = {"v": _held(names, vars(model))}
    if model.model_extra:
        parts["extra"] = dict(model.model_extra)
    if model.__pydantic_private__:
        parts["private"] = dict(model.__pydantic_private__)
    if unset := [name for name in names if name not in model.model_fields_set]:
        parts["unset"] = ",".join(unset)
    return parts


def _model_together(cls: type[BaseModel], parts: Parts) -> BaseModel:
    fields = dict(parts["v"])
    for name, field in cls.model_fields.items():
        if name in fields:
            continue
        if field.is_required():
            raise Refusal(
                f"lacks the field {name!r} of {title(cls)}; migrate the state, or give it a default"
            )
        fields[name] = field.get_default(call_default_factory=True, validated_data=fields)
    private = parts.get("private", {})
    _refuse_unknown(cls, private, cls.__private_attributes__)
    extra = parts.get("extra", {})
    open_to_more = cls.model_config.get("extra") == "allow"
    _refuse_unknown(cls, extra, extra if open_to_more else ())
    unset = parts["unset"].split(",") if "unset" in parts else []
    model = cls.__new__(cls)
    BaseModel.__setstate__(
        model,
        {
            "__dict__": {name: fields[name] for name in cls.model_fields},
            "__pydantic_fields_set__": (set(parts["v"]) | set(extra)).difference(unset),
            "__pydantic_extra__": extra if open_to_more else None,
            "__pydantic_private__": private if cls.__private_attributes__ else None,
        },
    )
    return model


def _dataclass_apart(value: Any) -> Parts:
    names = field_names(type(value))
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    parts: Parts = {"v": _held(names, held)}
    extra = {
        name: beside
        for name, beside in getattr(value, "__dict__", {}).items()
        if name not in held and not isinstance(getattr(type(value), name, None), cached_property)
    }
    return parts | ({"extra": extra} if extra else {})


def _dataclass_together(cls: type, parts: Parts) -> Any:
    fields = dict(parts["v"])
    for field in dataclasses.fields(cls):
        if field.name in fields:
            continue
        if field.default is not dataclasses.MISSING:
            fields[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            fields[field.name] = field.default_factory()
        else:
            raise Refusal(
                f"lacks the field {field.name!r} of {title(cls)}; migrate the state, or give it a default"
            )
    instance = object.__new__(cls)
    for name, content in (fields | parts.get("extra", {})).items():
        object.__setattr__(instance, name, content)
    return instance


def _held(names: list[str], held: Parts) -> Parts:
    if missing := [name for name in names if name not in held]:
        raise Refusal(f"has no value for its field {missing[0]!r}; set it")
    return {name: held[name] for name in names}
