"""How a place in a payload is written: $.to[0].name, and $["odd key"] for names that are not words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any  # a schema is whatever JSON can hold

ROOT = "$"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def below(path: str, key: str | int) -> str:
    """The path of a property or an item of what stands at `path`. Always ASCII, so that any form can post it."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _WORD.match(key) else f"{path}[{json.dumps(key)}]"


def path_text(parts: Iterable[str | int]) -> str:
    """The path of nested keys and indexes, from the root."""
    path = ROOT
    for part in parts:
        path = below(path, part)
    return path


def title_of(properties: Any, name: str) -> str:
    """The title that a schema's `properties` give a name, if any."""
    told = properties.get(name) if isinstance(properties, dict) else None
    title = told.get("title") if isinstance(told, dict) else None
    return title if isinstance(title, str) else ""


def label_of(key: str | int, title: str = "") -> str:
    """What people call a property: its title unless that only repeats the key, else the key in words."""
    if isinstance(key, int):
        return str(key + 1)
    words = key.replace("_", " ").strip()
    if title and title.casefold() != words.casefold():
        return title
    return words[:1].upper() + words[1:] if words else json.dumps(key)
