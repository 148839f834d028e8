"""Plain tree <-> canonical JSON text. One value has one text, so that digests can be compared."""

from __future__ import annotations

import hashlib
import json
import re

import orjson

from runs.core.codec_tree import MARK, Plain
from runs.core.errors import CodecError

# With these the fast encoder refuses most of what is not plain instead of writing it as something else.
STRICT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
PAIRS = f'"{MARK}":"dict"'  # cannot occur inside a JSON string, where each quote has a backslash before it
SURROGATE = re.compile("([\ud800-\udfff])")
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def encode(tree: Plain, sort: bool = False) -> str:
    """The canonical JSON text of a plain tree (from flatten, decode or apply; other objects are a mistake).

    `sort=True` orders the keys at every level, for requests, results and digests; False keeps their order, for state.
    """
    try:
        text = orjson.dumps(tree, option=STRICT | orjson.OPT_SORT_KEYS if sort else STRICT).decode()
    except orjson.JSONEncodeError:  # a lone surrogate somewhere
        return exact(_sorted_pairs(tree) if sort else tree, sort)
    if sort and PAIRS in text:
        return orjson.dumps(_sorted_pairs(tree), option=STRICT | orjson.OPT_SORT_KEYS).decode()
    return text


def exact(tree: Plain, sort: bool = False) -> str:
    """The same text as the fast encoder's, and lone surrogates as \\udXXX."""
    parts: list[str] = []
    _write(tree, sort, parts)
    return "".join(parts)


def decode(text: str | bytes) -> Plain:
    """The tree of a text that encode made. Raises CodecError for what is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass  # lone surrogates are known to the standard parser only
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CodecError("$", f"is not JSON: {error}") from None


def survives(text: str) -> bool:
    """Whether JSON gives the text back: two lone surrogates side by side would be read as one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return SURROGATE_PAIR.search(text) is None
    return True


def digest(text: str | bytes) -> str:
    """SHA-256 in hex, of a text's UTF-8."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _write(tree: Plain, sort: bool, parts: list[str]) -> None:
    kind = type(tree)
    if kind is dict:
        opening = "{"
        for key in sorted(tree) if sort else tree:
            parts += (opening, _string(key), ":")
            _write(tree[key], sort, parts)
            opening = ","
        parts.append("}" if tree else "{}")
    elif kind is list:
        opening = "["
        for item in tree:
            parts.append(opening)
            _write(item, sort, parts)
            opening = ","
        parts.append("]" if tree else "[]")
    elif kind is str:
        parts.append(_string(tree))
    else:
        try:
            parts.append(orjson.dumps(tree, option=STRICT).decode())
        except orjson.JSONEncodeError as error:
            raise CodecError(
                "$", f"a {kind.__name__} is not plain ({error}); flatten the value first"
            ) from None


def _string(text: str) -> str:
    pieces = SURROGATE.split(text)  # text, surrogate, text, ...
    pieces[::2] = [orjson.dumps(piece).decode()[1:-1] for piece in pieces[::2]]
    pieces[1::2] = [f"\\u{ord(piece):04x}" for piece in pieces[1::2]]
    return f'"{"".join(pieces)}"'


def _sorted_pairs(tree: Plain) -> Plain:
    """The tree with the pairs of every dict that is stored as pairs in the order of their keys' texts."""
    if type(tree) is list:
        return [_sorted_pairs(item) for item in tree]
    if type(tree) is not dict:
        return tree
    ordered = {key: _sorted_pairs(item) for key, item in tree.items()}
    if ordered.get(MARK) == "dict":
        ordered["v"] = sorted(ordered["v"], key=lambda pair: encode(pair[0], sort=True))
    return ordered


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
