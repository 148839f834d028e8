"""Text from outside, made fit for any database column and any page."""

from __future__ import annotations

LONGEST_ERROR = 16_000


def storable_text(text: str, longest: int = LONGEST_ERROR) -> str:
    """NUL and lone surrogates are written as escapes; the end of a very long text is cut, and says so."""
    clean = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(clean) > longest:
        clean = f"{clean[:longest]} … ({len(clean):,} characters in all)"
    return clean
