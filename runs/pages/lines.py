"""What differs between two states, as lines to read: each path with what it was and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.pages import words
from runs.pages.differences import ABSENT, Difference, differences

LINE_SHOWN = 600  # letters of one value in a difference


@dataclass(frozen=True)
class Line:
    """One changed path: its old and its new value as JSON, "" where there is none."""

    path: str
    old: str
    new: str


def lines(old: Any, new: Any) -> list[Line]:
    return [_line(one) for one in differences(old, new)]


def _line(difference: Difference) -> Line:
    return Line(difference.path or _("everything"), _shown(difference.old), _shown(difference.new))


def _shown(value: Any) -> str:
    if value is ABSENT:
        return ""
    text = words.pretty_line(value)
    if len(text) <= LINE_SHOWN:
        return text
    return _("%(begin)s… (%(count)s letters)") % {"begin": text[:LINE_SHOWN], "count": len(text)}
