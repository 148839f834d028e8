"""Text from outside, made fit for any database column and any page."""

from __future__ import annotations

import re

LONGEST_ERROR = 16_000
SURROGATE = re.compile("[\ud800-\udfff]")
# What Python calls printable, and nobody sees: blanks, fillers, joiners, variation selectors.
UNSEEN = re.compile(
    "[\\s\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def is_storable(text: str) -> bool:
    """Whether any database column holds the text as it is."""
    return "\x00" not in text and not SURROGATE.search(text)


def is_legible(text: str) -> bool:
    """Whether people can read it and tell it from others: printed as it is, and something is seen."""
    return text.isprintable() and any(not UNSEEN.match(each) for each in text)


def storable_text(text: str, longest: int = LONGEST_ERROR) -> str:
    """NUL and lone surrogates are written as escapes; the end of a very long text is cut, and says so."""
    clean = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(clean) > longest:
        clean = f"{clean[:longest]} … ({len(clean):,} characters in all)"
    return clean
