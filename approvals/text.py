"""What people write, made fit for a text column."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from runs.core import words
from runs.errors import Invalid, told

if TYPE_CHECKING:
    from datetime import date, datetime

    from django.utils.functional import Promise


LONGEST = 20_000


def storable_text(text: str) -> str:
    """The text as every database can hold it, all of it: NUL and lone surrogates as the escapes \\x00 and \\ud800."""
    return words.storable_text(text, longest=sys.maxsize)


def checked_text(text: object, field: str) -> str:
    """`text`, as it is. Raises Invalid when it is no text, or too long."""
    if not isinstance(text, str):
        raise Invalid(
            told(_("The %(field)s is a text, not %(kind)s."), field=field, kind=type(text).__name__),
            {field: [_("Write a text.")]},
        )
    if len(text) > LONGEST:
        values = {"field": field, "count": len(text), "most": LONGEST}
        said = told(_("Too long: %(count)s characters, %(most)s are the most."), **values)
        raise Invalid(
            told(_("The %(field)s is too long: %(count)s characters, %(most)s are the most."), **values),
            {field: [said]},
        )
    return text


def clock_text(moment: datetime) -> str:
    """A moment for a sentence that is stored: 14:06:09 CET on 2026-11-26."""
    return timezone.localtime(moment).strftime("%H:%M:%S %Z on %Y-%m-%d")


def clock_said(moment: datetime) -> Promise:
    """The same for a sentence that is said, in its reader's language."""
    local = timezone.localtime(moment)
    return told(_("%(time)s on %(day)s"), time=f"{local:%H:%M:%S %Z}", day=f"{local:%Y-%m-%d}")


def through(day: date) -> str:
    """Until the end of a day, for a sentence that is stored: up to and including 2026-12-09."""
    return f"up to and including {day:%Y-%m-%d}"


def is_for_an_absence(note: str) -> bool:
    """Whether a part was given for a time of absence, by the note that stands in the trail."""
    return bool(_AWAY.match(note))


_CLOCK = re.compile(r"(\d\d:\d\d:\d\d \S+) on (\d{4}-\d\d-\d\d)")
_AWAY = re.compile(r"away (until|up to and including) ")


def respoken(text: str) -> str:
    """A stored sentence with its moments as its reader's language has them."""
    words = {"until": _("away until"), "up to and including": _("away up to and including")}
    text = _AWAY.sub(lambda found: f"{words[found[1]]} ", text)
    return _CLOCK.sub(lambda found: _("%(time)s on %(day)s") % {"time": found[1], "day": found[2]}, text)
