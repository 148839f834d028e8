"""Moments as pages draw them: said as people say it, exact on hover and focus. A list draws a hundred of them."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache

from django.utils import timezone
from django.utils.dates import MONTHS_3, WEEKDAYS_ABBR
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from runs.pages import words


def ago(
    moment: datetime,
    now: datetime,
    *,
    bare: bool = False,
    end: bool = False,
    focus: bool = True,
    prefix: str = "",
) -> SafeString:
    """How long ago, or in how long. For what can be said, see the tag of this name (runs/templatetags/look.py)."""
    text = prefix + words.since(now - moment, bare=bare)
    form = ' data-form="bare"' if bare else ' data-form="ago"'
    if prefix:
        form += f' data-prefix="{escape(prefix)}"'
    return _drawn(moment, text, form=form, end=end, focus=focus)


def on_clock(moment: datetime, form: str, *, end: bool = False, focus: bool = True) -> SafeString:
    """`form` is a date format that words.py knows."""
    return _drawn(moment, words.dated(timezone.localtime(moment), form), end=end, focus=focus)


def exact(moment: datetime) -> str:
    """Thu 26 Nov 2026, 10:18:02 CET."""
    local = timezone.localtime(moment)  # as the date format "D j M Y, H:i:s T", in a tenth of its time
    return f"{_day(local.date(), get_language())}, {local:%H:%M:%S %Z}"


def _drawn(moment: datetime, text: str, *, form: str = "", end: bool, focus: bool) -> SafeString:
    place, stop = " time-end" if end else "", ' tabindex="0"' if focus else ""
    return SafeString(
        f'<time class="time{place}" datetime="{moment.isoformat(timespec="seconds")}"'
        f' data-exact="{escape(exact(moment))}"{form}{stop}>{escape(text)}</time>'
    )


@lru_cache(maxsize=1_000)
def _day(day: date, _language: str | None) -> str:
    """In the language that is spoken now; it is named so that each has its own."""
    return _("%(weekday)s %(day)s %(month)s %(year)s") % {
        "weekday": WEEKDAYS_ABBR[day.weekday()],
        "day": day.day,
        "month": str(MONTHS_3[day.month]).title(),
        "year": day.year,
    }
