"""Text from outside, made fit for any database column and any page."""

from __future__ import annotations

import re

LONGEST_ERROR = 16_000
SURROGATE = re.compile("[\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether any database column holds the text as it is."""
    return "\x00" not in text and not SURROGATE.search(text)


def storable_text(text: str, longest: int = LONGEST_ERROR) -> str:
    """NUL and lone surrogates are written as escapes; the end of a very long text is cut, and says so."""
    clean = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(clean) > longest:
        clean = f"{clean[:longest]} … ({len(clean):,} characters in all)"
    return clean
