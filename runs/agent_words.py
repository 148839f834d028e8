"""The pure part of an agent: what a model is told, and how what it wrote is read."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any  # arguments and results are the author's

from pydantic import BaseModel
from pydantic_core import to_json

from runs.core.errors import Permanent
from runs.core.tool import Tool
from runs.language_model import Message, Reply, Wish

RESULT_CHARACTERS = 20_000  # of a tool's result, that the model is told
SHOWN_CHARACTERS = 200  # of what cannot be read

ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer", "minLength": 1, "format": "textarea"}},
    "required": ["answer"],
    "additionalProperties": False,
}
MORE = {
    "type": "object",
    "properties": {
        "tokens": {"type": "integer", "title": "More tokens", "minimum": 0},
        "usd": {"type": "number", "title": "More USD", "minimum": 0},
    },
    "required": ["tokens", "usd"],
    "additionalProperties": False,
}


def offered(tool: Tool, given: Collection[str]) -> Message:
    """An author's tool as the model is told, without the arguments that are given already."""
    parameters = copy.deepcopy(tool.schema)
    shown = {name: schema for name, schema in parameters.get("properties", {}).items() if name not in given}
    parameters["properties"] = shown
    parameters["required"] = [name for name in parameters.get("required", ()) if name in shown]
    return _function(tool.name, tool.description, parameters)


def own(name: str, description: str, arguments: type[BaseModel]) -> Message:
    """A tool of the agent itself."""
    return _function(name, description, arguments.model_json_schema())


def _function(name: str, description: str, parameters: dict[str, Any]) -> Message:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def said(reply: Reply) -> Message:
    """A reply as a message of the talk."""
    message: Message = {"role": "assistant", "content": reply.text or None}
    if reply.wishes:
        message["tool_calls"] = [
            {"id": wish.id, "type": "function", "function": {"name": wish.name, "arguments": _repeated(wish)}}
            for wish in reply.wishes
        ]
    return message


def _repeated(wish: Wish) -> str:
    """The arguments, unless they are none: some endpoints refuse a talk that holds such. The model is told what it
    wrote in the tool's answer."""
    try:
        arguments(wish.arguments)
    except Permanent:
        return "{}"
    return wish.arguments


def arguments(written: str) -> dict[str, Any]:
    """What a model wrote as arguments. Raises Permanent unless it is a JSON object."""
    try:
        read = json.loads(written)
    except (ValueError, RecursionError) as wrong:
        raise Permanent(f"the arguments are no JSON ({wrong}): {written[:SHOWN_CHARACTERS]!r}") from None
    if not isinstance(read, dict):
        raise Permanent(f"the arguments are no JSON object: {written[:SHOWN_CHARACTERS]!r}")
    return read


def key(pattern: str, bound: Mapping[str, Any]) -> str:
    """An author's key with the arguments filled in; {run_id} is left for the engine."""
    try:
        return pattern.format_map({**bound, "run_id": "{run_id}"})
    except (LookupError, AttributeError, ValueError) as wrong:
        raise Permanent(f"the key {pattern!r} cannot be filled in: {wrong!r}") from wrong


def result(value: Any) -> str:
    """A tool's result as text; the end of a long one is cut, and says so."""
    text = value if isinstance(value, str) else to_json(value, fallback=str).decode()
    if len(text) > RESULT_CHARACTERS:
        text = f"{text[:RESULT_CHARACTERS]} … ({len(text):,} characters in all)"
    return text


def paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
