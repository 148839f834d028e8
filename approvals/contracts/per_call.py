"""The form of langchain's middleware by call: one question a gated call, which says itself what may answer it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # requests and answers are any JSON

from approvals.contracts.batched import KNOWN
from approvals.contracts.contract import (
    EDIT,
    Action,
    Contract,
    Reply,
    action,
    decision,
    decision_at,
    decision_place,
)
from approvals.forms.paths import ROOT
from approvals.forms.schemas import root_of, target_of

TYPE = "tool_approval"


def read(payload: Any, schema: Any) -> Contract | None:
    """The contract of {"type": "tool_approval", ...}, its `response_schema` beside it or as the question's schema."""
    if not isinstance(payload, dict) or payload.get("type") != TYPE:
        return None
    answers = root_of(payload.get("response_schema") or schema)
    branches = _branches(answers)
    if not branches or any(verdict not in KNOWN for verdict in branches):
        return None
    asked = action(
        payload.get("name"),
        payload.get("args"),
        payload.get("description"),
        list(branches),
        _arguments(branches.get(EDIT), answers),
    )
    return Contract("per_call", (asked,), _write, _listen, _place) if asked is not None else None


def _branches(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The decisions that the schema describes, by their type; one alone is the schema itself."""
    found = {}
    for each in schema.get("oneOf") or schema.get("anyOf") or [schema]:
        branch = _resolved(each, schema)
        kind = _property(branch, "type", schema)
        some = kind.get("enum")
        verdict = kind.get("const") or (some[0] if isinstance(some, list) and some else None)
        if not isinstance(verdict, str):
            return {}
        found[verdict] = branch
    return found


def _arguments(edit: dict[str, Any] | None, root: dict[str, Any]) -> dict[str, Any]:
    """The schema of an edit's arguments, with the definitions that it refers to."""
    args = _property(_property(edit or {}, "edited_action", root), "args", root)
    if set(args) <= {"type", "title", "additionalProperties", "description"}:
        return {}  # any object: then the model's own keys are what is known
    return {**{word: root[word] for word in ("$defs", "definitions") if word in root}, **args}


def _property(schema: dict[str, Any], name: str, root: dict[str, Any]) -> dict[str, Any]:
    """A reference may lead to any value, of which nobody has checked that it is a schema."""
    properties = schema.get("properties")
    return _resolved(properties.get(name), root) if isinstance(properties, dict) else {}


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema, dict) and "$ref" in schema:
        schema = target_of(schema["$ref"], root)
    return schema if isinstance(schema, dict) else {}


def _write(actions: Sequence[Action], replies: Sequence[Reply]) -> Any:
    return decision(actions[0], replies[0])


def _listen(answer: Any) -> list[Reply]:
    return [decision_at(ROOT, answer)]


def _place(number: int, part: str) -> str:
    return decision_place(ROOT, part)
