"""Keeps the values of secrets out of what is stored: finds them in texts and trees, in the forms they travel in."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

from runs.core.codec_tree import MARK, Plain, children, path_text
from runs.core.errors import SecretFound

LEAST_LENGTH = 8  # characters; shorter values would be found everywhere by chance
CONTAINERS = frozenset({"tuple", "set", "frozenset", "dict", "model", "dataclass"})


class Guard:
    """Knows the values of secrets, by name, in every form that is looked for. Values under 8 characters are not."""

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Pairs may have one name more than once: a value, and what it was before."""
        pairs = values.items() if isinstance(values, Mapping) else sorted(values)
        found = {form: name for name, value in pairs for form in forms(value)}
        self._needles = dict(
            sorted(found.items(), key=lambda item: -len(item[0]))
        )  # the longest is redacted first
        self._any = re.compile("|".join(map(re.escape, self._needles)))

    def __repr__(self) -> str:
        return f"<Guard of {len(set(self._needles.values()))} secrets>"

    def find(self, text: str) -> str | None:
        """The name of a secret whose value is in the text."""
        for needle, name in self._needles.items():
            if needle in text:
                return name
        return None

    def refuse(self, text: str, path: str) -> None:
        """Raise SecretFound, naming the path and the secret, if the text holds one."""
        if name := self.find(text):
            raise SecretFound(path, name)

    def locate(self, tree: Plain) -> tuple[str, str] | None:
        """Where in a plain tree a secret is, and its name: ("$.headers.auth", "API_KEY").

        Walks the whole tree: for a large one, ask `find` of its text first.
        """
        if not self._needles:
            return None
        return self._search(tree, [])

    def redact(self, text: str) -> str:
        """The text with «secret:NAME» in place of each value."""
        if not self.find(text):
            return text
        return self._any.sub(lambda match: placeholder(self._needles[match[0]]), text)

    def redact_begun(self, text: str) -> tuple[str, str]:
        """Of a text that goes on: what is settled, redacted, and the rest as it is, which may become a secret's value.

        A value at the very end that is the beginning of another one belongs to the rest.
        """
        end = len(text) - self._begun(text)
        for match in self._any.finditer(text) if self._needles else ():
            if (
                match.start() < end < match.end()
            ):  # settled, though its own end looks like another's beginning
                end = len(text) - self._begun(text[match.end() :])
        return self.redact(text[:end]), text[end:]

    def _begun(self, text: str) -> int:
        """How many letters at the end may be the beginning of a secret's value, of which the rest is to come."""
        most = 0
        for needle in self._needles:
            end = text[1 - len(needle) :]
            at = end.find(needle[0])
            while at >= 0 and not needle.startswith(end[at:]):
                at = end.find(needle[0], at + 1)
            if at >= 0:
                most = max(most, len(end) - at)
        return most

    def redact_tree(self, tree: Plain) -> Plain:
        """The tree with each text redacted; a number, or a typed value such as bytes, that holds a secret becomes the
        placeholder alone. The same object if nothing was found."""
        if not self._needles or not self.locate(tree):
            return tree
        return self._redacted(tree)

    def _search(self, tree: Plain, steps: list[object]) -> tuple[str, str] | None:
        kind = type(tree)
        if kind is dict or kind is list:
            for more, child in children(tree):
                if found := self._search(child, steps + more):
                    return found
            return None
        name = self.find(_leaf_text(tree))
        if not name:
            return None
        return path_text("$", [self.redact(step) if type(step) is str else step for step in steps]), name

    def _redacted(self, tree: Plain) -> Plain:
        if type(tree) is list:
            return [self._redacted(item) for item in tree]
        if type(tree) is str:
            return self.redact(tree)
        if type(tree) is not dict:
            name = self.find(_leaf_text(tree))
            return placeholder(name) if name else tree
        if MARK in tree and tree[MARK] not in CONTAINERS:
            found = self.locate(tree)
            return placeholder(found[1]) if found else tree
        return {key if MARK in tree else self.redact(key): self._redacted(item) for key, item in tree.items()}


def placeholder(name: str) -> str:
    return f"«secret:{name}»"


def forms(value: str) -> Iterator[str]:
    """The ways in which a value may stand in a text: itself, JSON-escaped (once or twice), as repr, URL-quoted, in
    base64 at any offset."""
    for plain in {value, value.strip()}:
        if len(plain) < LEAST_LENGTH:
            continue
        yield plain
        yield repr(plain)[1:-1]
        content = plain.encode("utf-8", "surrogatepass")
        for escaped in _escaped(plain):
            yield escaped
            yield from _escaped(escaped)  # JSON kept as a text within JSON
        for quoted in (quote(content), quote(content, safe=""), quote_plus(content)):
            yield quoted
            yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
        for offset in range(3):
            yield from _base64(content, offset)


def _escaped(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _base64(content: bytes, offset: int) -> Iterator[str]:
    """The characters that stand for the content alone when `offset` bytes come before it."""
    first = -(-offset * 8 // 6)
    last = (offset + len(content)) * 8 // 6
    shifted = b"\0" * offset + content
    yield b64encode(shifted).decode()[first:last]
    yield urlsafe_b64encode(shifted).decode()[first:last]


def _leaf_text(leaf: Plain) -> str:
    return leaf if type(leaf) is str else str(leaf)
