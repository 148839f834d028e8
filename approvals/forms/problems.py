"""Where a payload does not fit its schema, in plain words, by path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any  # payloads and schemas are whatever JSON can hold

from jsonschema.exceptions import ValidationError, best_match

from approvals.forms.paths import below, path_text
from approvals.forms.schemas import root_of, validator
from approvals.forms.values import visible

_KINDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "yes or no (true or false)",
    "null": "nothing (null)",
    "array": "a list",
    "object": "an object",
}
_MOST = 50


def problems(payload: Any, schema: Any) -> dict[str, list[str]]:
    """{"$.to": ["..."]}; empty when the payload fits, or when there is no schema that can be used."""
    told = root_of(schema)
    if not told:
        return {}
    found: dict[str, list[str]] = {}
    try:
        for number, error in enumerate(validator(told).iter_errors(payload)):
            if number >= _MOST:
                break
            for path, text in _told(error):
                if text not in found.setdefault(path, []):
                    found[path].append(text)
    except Exception as error:  # noqa: BLE001  a reference that leads nowhere is found only on the way
        return {"$": [f"The question's own schema cannot be used, so no edit can be checked: {error}"[:300]]}
    return found


def _told(error: ValidationError) -> Iterator[tuple[str, str]]:
    path, limit = path_text(error.absolute_path), error.validator_value
    match error.validator:
        case "required":
            for name in limit:
                if name not in error.instance:
                    yield below(path, name), f"{_quoted(name)} is missing; it is required."
        case "additionalProperties" | "unevaluatedProperties":
            known = sorted(error.schema.get("properties", {}))
            for name in error.instance:
                if name not in known:
                    listed = ", ".join(known) or "none"
                    yield below(path, name), f"{_quoted(name)} is not known here; known are: {listed}."
        case "anyOf" | "oneOf" if error.context:
            kinds = [each for each in error.context if each.validator == "type" and not each.path]
            if len(kinds) == len(error.context):
                wanted = list(dict.fromkeys(each.validator_value for each in kinds))
                yield path, _wrong_kind(wanted, error.instance)
            else:
                yield from _told(best_match(error.context) or error.context[0])
        case _:
            yield path, _words(error)


def _words(error: ValidationError) -> str:
    limit, value = error.validator_value, error.instance
    match error.validator:
        case "type":
            wanted = [limit] if isinstance(limit, str) else limit
            return _wrong_kind(wanted, value)
        case "maxLength":
            return f"This is too long: {len(value)} characters, {limit} are the most."
        case "minLength":
            return (
                "This must not be empty."
                if limit == 1
                else f"This is too short: at least {limit} characters."
            )
        case "minimum":
            return f"This must be {limit} or more."
        case "maximum":
            return f"This must be {limit} or less."
        case "exclusiveMinimum":
            return f"This must be more than {limit}."
        case "exclusiveMaximum":
            return f"This must be less than {limit}."
        case "multipleOf":
            return f"This must be a multiple of {limit}."
        case "enum":
            return f"This must be one of: {', '.join(_quoted(each) for each in limit)}."
        case "const":
            return f"This must stay {_quoted(limit)}."
        case "minItems":
            return f"This needs at least {limit} {'entry' if limit == 1 else 'entries'}."
        case "maxItems":
            return f"These are too many: {limit} {'entry is' if limit == 1 else 'entries are'} the most."
        case "uniqueItems":
            return "An entry is there twice."
        case "pattern":
            return f"This does not have the form it must have ({limit})."
        case "format":
            return f"This is not a valid {str(limit).replace('-', ' ')}."
        case _:
            return visible(error.message)[:300]


def _wrong_kind(wanted: list[str], value: Any) -> str:
    return f"This must be {' or '.join(_KINDS.get(kind, kind) for kind in wanted)}, not {_kind_of(value)}."


def _kind_of(value: Any) -> str:
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return _KINDS[kinds.get(type(value), "null")]


def _quoted(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))[:80]
