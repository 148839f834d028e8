"""JSON values as forms see them: exact equality, text that shows everything, text that can be read back."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, Final  # Any: whatever JSON can hold

from django.utils.translation import gettext as _

MAX_DIGITS = 4000


class Absent:
    """No value at all, which is not null."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent()

# What a page would swallow or what would turn the text around before the reader's eyes: written as escapes.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LONE_RETURN = re.compile(r"\r(?!\n)")


class NotJson(ValueError):
    """A text that is not JSON: the message says where and why, in words."""


def same(one: Any, other: Any) -> bool:
    """Equal value and equal type: 1, 1.0 and True differ. The order of an object's names is of no matter."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """JSON to read and to edit: letters as they are, what cannot be seen as an escape; reads back equal."""
    if value is ABSENT:
        return ""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """A text for reading: what cannot be seen, or cannot be sent, is spelled out, as in [U+202E]."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def shows_whole(text: str) -> bool:
    """Whether a text field of a page can hold this text and give it back."""
    return not _UNSEEN.search(text) and not _LONE_RETURN.search(text)


def lines(text: str) -> str:
    """Line ends as one sign, whatever browser posted them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_json(text: str) -> Any:
    """Strict JSON: no NaN, no name twice, no number that would change. Raises NotJson naming line and column."""
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except json.JSONDecodeError as error:
        where = _("Line %(line)s, column %(column)s:") % {"line": error.lineno, "column": error.colno}
        raise NotJson(f"{where} {_plain(error.msg)}") from error
    except RecursionError as error:
        raise NotJson(_("This is nested too deeply to be read.")) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [name for name, count in Counter(name for name, _value in pairs).items() if count > 1]
    if twice:
        raise NotJson(
            _("The name %(name)s is there twice in one object.")
            % {"name": json.dumps(twice[0], ensure_ascii=False)}
        )
    return dict(pairs)


def _constant(word: str) -> Any:
    raise NotJson(_("%(word)s is not a JSON value; use null, or a text in quotes.") % {"word": word})


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotJson(_("The number %(number)s is too large.") % {"number": text[:40]})
    return number


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise NotJson(
            _("A number of %(count)s digits is too long; %(most)s are the most.")
            % {"count": len(text), "most": MAX_DIGITS}
        )
    return int(text)


def _plain(message: str) -> str:
    for begins, words in (
        ("Expecting ',' delimiter", _("a comma is missing here, or a quote was closed too early.")),
        ("Expecting ':' delimiter", _("a colon is missing between a name and its value.")),
        ("Expecting property name", _("a name in double quotes is expected here (is a comma left over?).")),
        ("Illegal trailing comma", _("there is a comma too many.")),
        ("Expecting value", _("a value is missing here; text needs double quotes.")),
        ("Extra data", _("the value has ended before this; something is left over.")),
        ("Unterminated string", _("a text begins here whose closing quote is missing.")),
        ("Invalid control character", _("a line break or tab inside a text must be written \\n or \\t.")),
        ("Invalid \\", _("a backslash begins an escape that does not exist; write two for one.")),
    ):
        if message.startswith(begins):
            return words
    return _("this is no JSON.")
