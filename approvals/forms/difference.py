"""What an edit changed: old -> new by path, and word by word in long texts. Templates escape what is in here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any  # payloads are whatever JSON can hold

from approvals.forms.paths import ROOT, below, label_of
from approvals.forms.values import ABSENT, json_text, lines, same, visible

SAME, GONE, CAME = "same", "del", "ins"
LONG_TEXT = 80
MAX_PAIRS = 4_000_000  # beyond, comparing words would take seconds

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    kind: str  # same, del or ins
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    pieces: tuple[Piece, ...] = ()
    folded: int = 0  # so many paragraphs in a row are as they were

    @property
    def is_fold(self) -> bool:
        return self.folded > 0


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs. `old` and `new` are texts to show; ABSENT sides are ""; long texts have `words`."""

    path: str
    label: str
    kind: str  # changed, added or removed
    old: str
    new: str
    words: tuple[Paragraph, ...] = ()


def changes(old: Any, new: Any, path: str = ROOT, label: str = "") -> list[Change]:
    """Every place where the two payloads differ, in the order of the new one."""
    if same(old, new):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*new, *(name for name in old if name not in new)]
        return [
            change
            for name in names
            for change in changes(
                old.get(name, ABSENT),
                new.get(name, ABSENT),
                below(path, name),
                _joined(label, label_of(name)),
            )
        ]
    if isinstance(old, list) and isinstance(new, list):
        return list(_list_changes(old, new, path, label))
    return [change_of(path, label, old, new)]


def change_of(path: str, label: str, old: Any, new: Any) -> Change:
    """One change, whatever the two sides are."""
    kind = "added" if old is ABSENT else "removed" if new is ABSENT else "changed"
    words: tuple[Paragraph, ...] = ()
    if isinstance(old, str) and isinstance(new, str):
        old, new = lines(old), lines(new)
        if max(len(old), len(new)) > LONG_TEXT or "\n" in old + new:
            words = tuple(word_difference(visible(old), visible(new)))
    elif _are_scalars(old) and _are_scalars(new):
        words = (Paragraph(pieces=tuple(_item_pieces(old, new))),)
    return Change(path, label, kind, _shown(old, new), _shown(new, old), words)


def _are_scalars(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and not any(isinstance(each, dict | list) for each in value)
    )


def _item_pieces(old: list[Any], new: list[Any]) -> Iterator[Piece]:
    """A short list item by item, so that one gone address is seen among those that stay."""
    before, after = ([_item_text(each) for each in side] for side in (old, new))
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Piece(SAME, " ".join(before[i:i_end]) + " ")
            continue
        for kind, items in ((GONE, before[i:i_end]), (CAME, after[j:j_end])):
            for item in items:
                yield Piece(kind, item)
                yield Piece(SAME, " ")


def _item_text(value: Any) -> str:
    return visible(value) if isinstance(value, str) and value.strip() else json_text(value, indent=None)


def word_difference(old: str, new: str) -> Iterator[Paragraph]:
    """Paragraph by paragraph, word by word; runs of equal paragraphs are folded into their number."""
    before, after = old.split("\n"), new.split("\n")
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            if kept := sum(1 for line in before[i:i_end] if line.strip()):
                yield Paragraph(folded=kept)
            continue
        for number in range(max(i_end - i, j_end - j)):
            gone = before[i + number] if i + number < i_end else ""
            came = after[j + number] if j + number < j_end else ""
            if gone or came:
                yield Paragraph(pieces=tuple(_word_pieces(gone, came)))


def _word_pieces(old: str, new: str) -> Iterator[Piece]:
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if not before or not after or len(before) * len(after) > MAX_PAIRS:
        yield from _pair(old, new)
        return
    gone, came = "", ""
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        left, right = "".join(before[i:i_end]), "".join(after[j:j_end])
        # A lone space or comma between two changes would cut one change into crumbs.
        crumb = tag == "equal" and len(left.strip()) < 2 and (gone or came) and i_end < len(before)
        if tag == "equal" and not crumb:
            yield from _pair(gone, came)
            gone, came = "", ""
            yield Piece(SAME, left)
        else:
            gone, came = gone + left, came + right
    yield from _pair(gone, came)


def _pair(gone: str, came: str) -> Iterator[Piece]:
    if gone == came:
        if gone:
            yield Piece(SAME, gone)
        return
    lead = gone[: len(gone) - len(gone.lstrip())]
    if lead and came.startswith(lead):
        yield Piece(SAME, lead)
        gone, came = gone[len(lead) :], came[len(lead) :]
    tail = gone[len(gone.rstrip()) :]
    if not (tail and came.endswith(tail)):
        tail = ""
    gone, came = gone[: len(gone) - len(tail)], came[: len(came) - len(tail)]
    if gone:
        yield Piece(GONE, gone)
    if came:
        yield Piece(CAME, came)
    if tail:
        yield Piece(SAME, tail)


def _list_changes(old: list[Any], new: list[Any], path: str, label: str) -> Iterator[Change]:
    before = [json_text(value, indent=None) for value in old]
    after = [json_text(value, indent=None) for value in new]
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for number in range(max(i_end - i, j_end - j)):
            gone = old[i + number] if i + number < i_end else ABSENT
            came = new[j + number] if j + number < j_end else ABSENT
            at = j + number if came is not ABSENT else i + number
            yield from changes(gone, came, below(path, at), _joined(label, str(at + 1)))


def _joined(label: str, more: str) -> str:
    return f"{label} {more}" if label and more.isdigit() else f"{label}, {more}" if label else more


def _shown(value: Any, other: Any) -> str:
    if value is ABSENT:
        return ""
    if isinstance(value, str):
        # Quoted where only the kind or an empty text tells the two sides apart.
        return (
            visible(lines(value))
            if value.strip() and isinstance(other, str) or other is ABSENT
            else json_text(value)
        )
    if isinstance(value, list) and all(isinstance(each, str | int | float | bool) for each in value):
        return (
            ", ".join(visible(each) if isinstance(each, str) else json_text(each) for each in value) or "[]"
        )
    return json_text(value)
