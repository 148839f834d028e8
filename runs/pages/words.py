"""The words that pages use for statuses, spans of time and people: one table, so that every page says the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.utils.dateformat import format as date_format
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy, pgettext, pgettext_lazy
from django.utils.translation import gettext as _

NBSP = "\u00a0"

# Moments and days in Django's letters; a language has its own order and points.
_FORMS = (
    pgettext_lazy("date format", "D j M Y"),
    pgettext_lazy("date format", "D j M Y, H:i"),
    pgettext_lazy("date format", "D j M Y, H:i:s"),
    pgettext_lazy("date format", "D j M Y, H:i:s T"),
    pgettext_lazy("date format", "D j M, H:i"),
    pgettext_lazy("date format", "D j M, H:i:s"),
    pgettext_lazy("date format", "D H:i"),
    pgettext_lazy("date format", "H:i"),
    pgettext_lazy("date format", "H:i:s"),
)


@dataclass(frozen=True)
class StatusWord:
    """How one status is shown: always a colour (by `slug`), an icon and a word."""

    slug: str
    icon: str
    word: str | Promise


# Statuses of runs and of ledger entries, outcomes of approvals and verdicts, each as its row writes it.
STATUSES = {
    status.slug.replace("-", "_"): status
    for status in (
        StatusWord("created", "created", gettext_lazy("Created")),
        StatusWord("running", "running", gettext_lazy("Running")),
        StatusWord("waiting", "waiting", gettext_lazy("Waiting")),
        StatusWord("retrying", "retrying", gettext_lazy("Retrying")),
        StatusWord("completed", "completed", gettext_lazy("Completed")),
        StatusWord("failed", "failed", gettext_lazy("Failed")),
        StatusWord("cancelled", "cancelled", gettext_lazy("Cancelled")),
        StatusWord("open", "waiting", gettext_lazy("Open")),
        StatusWord("done", "completed", gettext_lazy("Done")),
        StatusWord("in-doubt", "in-doubt", gettext_lazy("In doubt")),
        StatusWord("compensated", "undo", gettext_lazy("Compensated")),
        StatusWord("approved", "completed", gettext_lazy("Approved")),
        StatusWord("approved-with-edits", "edit", gettext_lazy("Approved with edits")),
        StatusWord("auto-approved", "completed", gettext_lazy("Approved by its deadline")),
        StatusWord("responded", "comment", gettext_lazy("Answered")),
        StatusWord("rejected", "rejected", gettext_lazy("Rejected")),
        StatusWord("expired", "expired", gettext_lazy("Expired")),
        StatusWord("superseded", "retrying", gettext_lazy("Superseded")),
        StatusWord("late", "expired", gettext_lazy("Too late")),
        StatusWord("held", "held", gettext_lazy("Held")),
        StatusWord("delivered", "completed", gettext_lazy("Delivered")),
        StatusWord("unread", "mail", gettext_lazy("Unread")),
        StatusWord("undelivered", "mail", gettext_lazy("Undelivered")),
        StatusWord("not-reached", "created", gettext_lazy("Not reached")),
    )
}


def status_word(status: str) -> StatusWord:
    """The look of `status`; a status that this page does not know is shown by its own name."""
    known = STATUSES.get(str(status).replace("-", "_"))
    if known is not None:
        return known
    name = str(status).replace("_", " ").replace("-", " ")
    return StatusWord(name.replace(" ", "-"), "created", name.capitalize())


def span(length: timedelta | float | None) -> str:
    """A span of time in its two largest units: 8.2 s, 41 s, 1 min 41 s, 18 h 12 min, 2 d 3 h.

    `length` is a timedelta or seconds; None, for a span that is not known, gives an empty text.
    """
    if length is None:
        return ""
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    seconds = abs(seconds)
    if seconds < 1:
        return _join((f"{seconds * 1000:.0f}", _("ms")))
    if seconds < 10 and seconds != int(seconds):
        return _join((number_format(seconds, 1), _("s")))
    whole = int(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    units = ((days, _("d")), (hours, _("h")), (minutes, _("min")), (rest, _("s")))
    first = next(index for index, (count, _unit) in enumerate(units) if count)
    return _join(*((str(count), unit) for count, unit in units[first : first + 2] if count))


def short_span(length: timedelta, unit: Callable[[str], str] = _) -> str:
    """A span in its largest unit alone, as rows of a list show it: 12 s, 9 min, 22 h, 3 d. `unit` translates one."""
    seconds = int(abs(length.total_seconds()))
    if seconds >= 86400:
        return f"{seconds // 86400}{NBSP}{unit('d')}"
    if seconds >= 3600:
        return f"{seconds // 3600}{NBSP}{unit('h')}"
    return f"{seconds // 60}{NBSP}{unit('min')}" if seconds >= 60 else f"{seconds}{NBSP}{unit('s')}"


def since(length: timedelta, *, bare: bool = False, unit: Callable[[str], str] = _) -> str:
    """How long ago, or in how long when `length` is negative: 4 h ago, in 3 h 58 min; `bare` drops ago and in."""
    if bare:
        return short_span(length, unit)
    ahead = length < timedelta(0)
    if abs(length) < timedelta(seconds=1):
        return _("now")
    if ahead:
        return _("in %(span)s") % {"span": span(timedelta(seconds=int(-length.total_seconds())))}
    return _("%(span)s ago") % {"span": short_span(length, unit)}


def dated(moment: date, form: str) -> str:
    """A day, or a moment of its own zone, on the calendar: `form` is one of the above."""
    form = pgettext("date format", form)
    if not isinstance(moment, datetime) or not form.endswith("H:i"):
        return date_format(moment, form)
    return f"{_day(moment.date(), form.removesuffix('H:i'), get_language())}{moment:%H:%M}"


@lru_cache(maxsize=1_000)
def _day(day: date, form: str, _language: str | None) -> str:
    """In the language that is spoken now; it is named so that each has its own. A list has fifty moments of few days,
    and Django takes 50 µs for one."""
    return date_format(day, form)


# Any: a user, an anonymous one, a plain name or None; whatever a page has at hand for a person.
def person_name(person: Any) -> str:
    """The full name where there is one, else the user name."""
    if person is None:
        return ""
    full = getattr(person, "get_full_name", None)
    if full is None:
        return str(person)
    return full() or person.get_username()


def initials(person: Any) -> str:
    """Up to two letters for a round picture: Ada Obi and ada.obi give AO, mei gives ME."""
    parts = [part for part in person_name(person).replace(".", " ").replace("_", " ").split() if part]
    if not parts:
        return "?"
    if len(parts) == 1:
        return parts[0][:2].upper()
    return (parts[0][0] + parts[-1][0]).upper()


# Any: whatever JSON can hold.
def pretty(value: Any) -> str:
    """JSON for reading: indented, letters as they are, typed values by their value alone."""
    return printable(json.dumps(readable(value), indent=2, ensure_ascii=False, default=str))


def pretty_line(value: Any) -> str:
    """The same in one line."""
    return printable(json.dumps(readable(value), ensure_ascii=False, default=str))


def printable(text: str) -> str:
    """Text that a page can carry: lone surrogates and NUL are written as escapes."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def readable(tree: Any) -> Any:
    """A stored tree as a reader wants it: Decimal, dates and the like by their text, a blob by its digest and size."""
    if isinstance(tree, list):
        return [readable(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    form = tree.get("$")
    if form is None:
        return {key: readable(item) for key, item in tree.items()}
    if form == "dict":
        return {str(readable(key)): readable(item) for key, item in tree.get("v", [])}
    if "sha256" in tree:
        return f"blob {tree['sha256'][:8]}… ({size(tree.get('size', 0))})"
    if set(tree) <= {"$", "v", "c", "fold"} and "v" in tree:
        return readable(tree["v"])
    return {key: readable(item) for key, item in tree.items()}


def size(count: int) -> str:
    """Bytes in the unit that keeps the number short: 214 B, 1.1 KB, 18 KB, 2.5 MB."""
    amount, units = float(count), ["B", "KB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    number = number_format(amount, 1 if amount < 10 and units[0] != "B" else 0)
    return f"{number}{NBSP}{units[0]}"


def _join(*pairs: tuple[str, str]) -> str:
    return " ".join(f"{count}{NBSP}{unit}" for count, unit in pairs)
