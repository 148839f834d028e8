"""German in which each text that gettext gave stands in marks, and what a page says outside of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from unittest import mock

from django.utils.translation import trans_real

from runs.pages import moments, words

GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de"}
_PLACE = re.compile(r"(%(?:\(\w+\))?[sd]|\{\w*\})")
_WITHOUT_WORDS = re.compile(
    r"https?://\S+|[\w.+-]+@[\w.-]+|\b[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}\b|[0-9a-f]{6,}|[\w#]*\d[\w:#.-]*"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z_]+")
# A blockquote: reasons, and what the trail keeps.
SILENT = {"script", "style", "code", "pre", "textarea", "kbd", "time", "blockquote"}
SILENT_CLASSES = {"mono", "avatar", "material-symbols-outlined"}
EMPTY = {"meta", "link", "input", "br", "img", "path", "rect", "hr", "circle", "line", "use"}
SAID_BY = {"aria-label", "aria-description", "placeholder", "title", "alt"}
# Attributes for scripts that hold no text for people.
OF_SCRIPTS = {
    "data-live-url",
    "data-live",
    "data-live-brings",
    "data-field",
    "data-path",
    "data-value",
    "data-copy",
    "data-key",
}


class Pseudo:
    """`english`: what was asked for and has no German, ours or another's."""

    def __init__(self) -> None:
        self.english: set[str] = set()


@contextmanager
def pseudo_german() -> Iterator[Pseudo]:
    """What is put into a text stands outside the marks again, so that it is looked at by itself."""
    real, seen = trans_real.translation("de"), Pseudo()
    marking = copy.copy(real)

    def mark(text: str) -> str:
        parts = _PLACE.split(text.rpartition(trans_real.CONTEXT_SEPARATOR)[2])
        return "".join(part if number % 2 else f"⟦{part}⟧" for number, part in enumerate(parts) if part)

    def mark_one(text: str) -> str:
        if text not in real._catalog:
            seen.english.add(text)
        return mark(text)

    def mark_many(one: str, many: str, number: int) -> str:
        if (one, 0) not in real._catalog:
            seen.english.add(one)
        return mark(one if number == 1 else many)

    marking.gettext, marking.ngettext = mark_one, mark_many
    _forget_days()
    try:
        with mock.patch.dict(trans_real._translations, {"de": marking}):
            yield seen
    finally:
        _forget_days()


def _forget_days() -> None:
    """Days are written once in a language, and are kept: those that were written in the real German, or in this one."""
    for module in (moments, words):
        for kept in vars(module).values():
            if hasattr(kept, "cache_clear"):
                kept.cache_clear()


class Texts(HTMLParser):
    """What a page says, by text and by attributes that are read out or shown by a script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.said: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        silent = tag in SILENT or SILENT_CLASSES & set((given.get("class") or "").split())
        if tag not in EMPTY:
            self.open.append("silent" if silent else tag)
        self.said += [text for name, text in given.items() if text and _is_said(name, text)]
        if tag == "input" and given.get("type") in ("submit", "button", "reset"):
            self.said.append(given.get("value") or "")

    def handle_endtag(self, tag):
        if self.open:
            self.open.pop()

    def handle_data(self, text):
        if "silent" not in self.open and text.strip():
            self.said.append(" ".join(text.split()))


def _is_said(name: str, text: str) -> bool:
    return name in SAID_BY or name.startswith("data-") and name not in OF_SCRIPTS and " " in text.strip()


def unmarked(page: str, names: set[str]) -> list[str]:
    """The texts of a page that hold words outside the marks, but `names`."""
    left, before = "\n".join(Texts(page).said), None
    while left != before:
        left, before = re.sub(r"⟦[^⟦⟧]*⟧", "¦", left), left
    found = []
    for part in re.split(r"[\n¦]", left):
        bare = _WITHOUT_WORDS.sub(" ", _PLACE.sub(" ", part))
        if [word for word in _WORD.findall(bare) if word not in names]:
            found.append(" ".join(part.split()))
    return found
