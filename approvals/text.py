"""What people write, made fit for a text column."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from django.utils import timezone

from runs.core import words
from runs.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime

LONGEST = 20_000


def storable_text(text: str) -> str:
    """The text as every database can hold it, all of it: NUL and lone surrogates as the escapes \\x00 and \\ud800."""
    return words.storable_text(text, longest=sys.maxsize)


def checked_text(text: object, field: str) -> str:
    """`text`, as it is. Raises Invalid when it is no text, or too long."""
    if not isinstance(text, str):
        raise Invalid(f"The {field} is a text, not {type(text).__name__}.", {field: ["Write a text."]})
    if len(text) > LONGEST:
        said = f"Too long: {len(text)} characters, {LONGEST} are the most."
        raise Invalid(
            f"The {field} is too long: {len(text)} characters, {LONGEST} are the most.", {field: [said]}
        )
    return text


def clock_text(moment: datetime) -> str:
    """A moment for a sentence: 14:06:09 CET on 2026-11-26."""
    return timezone.localtime(moment).strftime("%H:%M:%S %Z on %Y-%m-%d")
