"""Reading a JSON schema as far as a form needs it: references, unions with null, the one branch that fits a value.

jsonschema is imported where a schema is read: it takes as long as a tenth of all that a command loads, and few need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # schemas and payloads are whatever JSON can hold

from approvals.forms.values import ABSENT

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_TYPES = ("object", "array", "string", "integer", "number", "boolean")
_MAX_HOPS = 40
_VALUES = ("enum", "const", "default", "examples")  # below these stand values, not schemas
_NAMED = (
    "properties",
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
)  # by names, not by words


@dataclass(frozen=True, slots=True)
class Described:
    type: str  # "" where the schema does not settle it
    schema: dict[str, Any]
    nullable: bool = False


def root_of(schema: Any) -> dict[str, Any]:
    """The schema if it is one, else an empty one: a broken schema must not hide the payload."""
    if not isinstance(schema, dict):
        return {}
    from jsonschema import Draft202012Validator

    try:
        Draft202012Validator.check_schema(schema)
    except Exception:  # noqa: BLE001  any failure to read it, deep nesting included, means that it cannot be used
        return {}
    return schema


def moved(schema: dict[str, Any], place: str) -> dict[str, Any]:
    """The schema as it reads below `place` (#/$defs/pay) of another one: what it refers to in itself is found there."""
    return _moved({word: part for word, part in schema.items() if word not in ("$id", "$schema")}, place)


def _moved(part: Any, place: str) -> Any:
    if isinstance(part, list):
        return [_moved(one, place) for one in part]
    if not isinstance(part, dict):
        return part
    there: dict[str, Any] = {}
    for word, held in part.items():
        if word in _VALUES:
            there[word] = held
        elif word in _NAMED and isinstance(held, dict):
            there[word] = {name: _moved(below_it, place) for name, below_it in held.items()}
        elif word == "$ref" and isinstance(held, str) and (held == "#" or held.startswith("#/")):
            there[word] = place + held.removeprefix("#")
        else:
            there[word] = _moved(held, place)
    return there


def described(schema: Any, root: dict[str, Any], value: Any) -> Described:
    """What `schema` says about a place that holds `value`; without a word of it, what the value's own shape says."""
    told, nullable = _plain(schema if isinstance(schema, dict) else {}, root, value)
    if "const" in told or "enum" in told:
        return Described("", told, nullable)
    kind = told.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return Described(kind, told, nullable)
    if "properties" in told and isinstance(value, dict):
        return Described("object", told, nullable)
    if value is ABSENT or value is None:
        return Described("", told, nullable)
    shape = shape_of(value)
    return Described(shape.get("type", ""), {**shape, **told}, nullable)


def shape_of(value: Any, depth: int = 8) -> dict[str, Any]:
    """A schema that says what this value is made of, `depth` levels down: a form and a new item are made like it."""
    if not depth:
        return {}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, str):
        return {"type": "string"}
    if isinstance(value, dict) and value:
        below = {name: shape_of(held, depth - 1) for name, held in value.items()}
        return {"type": "object", "properties": below, "required": list(value)}
    if isinstance(value, list) and value:
        shapes = [shape_of(held, depth - 1) for held in value]
        alike = all(shape == shapes[0] for shape in shapes)
        return (
            {"type": "array", "items": shapes[0]} if alike and shapes[0] else {"type": "array", "items": {}}
        )
    return {}


def _plain(schema: dict[str, Any], root: dict[str, Any], value: Any) -> tuple[dict[str, Any], bool]:
    nullable = False
    for _hop in range(_MAX_HOPS):
        if "$ref" in schema:
            schema = {**target_of(schema["$ref"], root), **_without(schema, "$ref")}
        elif len(schema.get("allOf") or ()) == 1 and isinstance(schema["allOf"][0], dict):
            schema = {**schema["allOf"][0], **_without(schema, "allOf")}
        elif isinstance(schema.get("type"), list):
            types = [name for name in schema["type"] if name != "null"]
            nullable = nullable or "null" in schema["type"]
            fits = [name for name in types if _fits(value, {"type": name}, root)]
            chosen = types if len(types) == 1 else fits[:1]
            schema = {**schema, "type": chosen[0] if chosen else ""}
        elif union := next((word for word in ("anyOf", "oneOf") if word in schema), ""):
            branches = [branch for branch in schema[union] if branch != {"type": "null"}]
            nullable = nullable or len(branches) < len(schema[union])
            if len(branches) > 1:
                branches = [branch for branch in branches if _fits(value, branch, root)]
            if len(branches) != 1 or not isinstance(branches[0], dict):
                return _without(schema, union), nullable
            schema = {**branches[0], **_without(schema, union)}
        else:
            return schema, nullable
    return {}, nullable


def target_of(reference: Any, root: dict[str, Any]) -> dict[str, Any]:
    """A reference within the same schema; one that leads out is not followed."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _fits(value: Any, schema: Any, root: dict[str, Any]) -> bool:
    if value is ABSENT:
        return False
    whole = {"$defs": root.get("$defs", {}), "definitions": root.get("definitions", {}), "allOf": [schema]}
    try:
        return validator(whole).is_valid(value)
    except Exception:  # noqa: BLE001  a reference that leads nowhere, or nesting without end: it does not fit
        return False


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """A validator that fetches nothing: a reference to another address is refused, not followed."""
    import referencing
    from jsonschema import Draft202012Validator

    return Draft202012Validator(
        schema, registry=referencing.Registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def _without(schema: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: held for name, held in schema.items() if name != word}
