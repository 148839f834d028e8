"""Which classes may be stored: an allow-list by name, the only door by which a stored name becomes a class.

Nothing is ever imported to read a row. A graph allows the classes of its state model, a tool those of its signature;
others are allowed by the `storable` decorator.
"""

from __future__ import annotations

import dataclasses
import typing
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

C = TypeVar("C", bound=type)

BUILTINS = (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, BaseException)

_by_name: dict[str, type] = {}
_names: dict[type, str] = {}
_unresolved: set[type] = set()  # allowed, but their annotations named what did not exist yet


def storable(cls: C) -> C:
    """Class decorator: instances of this Enum, pydantic model or dataclass, and of those that its fields name, may
    be stored in state, requests and results."""
    allow(cls)
    allow_annotations(cls)
    return cls


def allow(cls: C) -> C:
    """Put one class on the list, under "module:QualName". A class of the same name that was there is replaced."""
    if not is_storable_kind(cls):
        raise TypeError(f"{cls!r} cannot be stored: only an Enum, a pydantic model or a dataclass can")
    name = f"{cls.__module__}:{cls.__qualname__}"
    replaced = _by_name.get(name)
    if replaced is not None and replaced is not cls:
        del _names[replaced]
    _by_name[name] = cls
    _names[cls] = name
    return cls


def allow_annotations(annotation: Any) -> None:  # any form an annotation may have
    """Allow every Enum, pydantic model and dataclass that an annotation names, and those their fields name."""
    _walk(annotation, set())


def name_of(cls: type) -> str | None:
    """The stored name of an allowed class; None if it is not allowed."""
    if cls not in _names:
        _resolve()
    return _names.get(cls)


def class_named(name: str) -> type | None:
    """The allowed class of that stored name; None if there is none. Imports nothing."""
    if name not in _by_name:
        _resolve()
    return _by_name.get(name)


def is_storable_kind(cls: object) -> bool:
    if not isinstance(cls, type):
        return False
    if issubclass(cls, (Enum, BaseModel)):
        return True
    return dataclasses.is_dataclass(cls) and not issubclass(cls, BUILTINS)


def _walk(annotation: Any, seen: set[int]) -> None:
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    if is_storable_kind(annotation):
        allow(annotation)
        for named in _field_annotations(annotation):
            _walk(named, seen)
    if isinstance(annotation, Enum):  # a Literal's value
        allow(type(annotation))
    if isinstance(annotation, (list, tuple)):  # Callable's arguments
        parts = annotation
    elif isinstance(annotation, TypeVar):
        parts = (annotation.__bound__, *annotation.__constraints__)
    elif typing.is_typeddict(annotation):
        parts = _hints(annotation)
    else:
        alias = getattr(annotation, "__value__", None), getattr(annotation, "__supertype__", None)
        parts = (*typing.get_args(annotation), *(part for part in alias if not isinstance(annotation, Enum)))
    for part in parts:
        _walk(part, seen)


def _field_annotations(cls: type) -> list[Any]:
    if issubclass(cls, Enum):
        return []
    if not issubclass(cls, BaseModel):
        return _hints(cls)
    if not cls.__pydantic_complete__ and cls.model_rebuild(raise_errors=False) is not True:
        _unresolved.add(cls)
    return [field.annotation for field in cls.model_fields.values()]


def _hints(cls: type) -> list[Any]:
    try:
        return list(typing.get_type_hints(cls, include_extras=True).values())
    except (NameError, TypeError, AttributeError):
        _unresolved.add(cls)
        return []


def _resolve() -> None:
    """Look again at classes whose annotations named what was defined only after them."""
    for cls in list(_unresolved):
        _unresolved.discard(cls)
        allow_annotations(cls)
