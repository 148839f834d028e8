"""Moments as pages draw them: said as people say it, exact on hover and focus. A list draws a hundred of them."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache
from html import escape

from django.utils import timezone
from django.utils.dates import MONTHS_3, WEEKDAYS_ABBR
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from runs.pages import words


class Moments:
    """Draws those of one page: what they have in common, zone and language, is asked once."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._zone, self._language = timezone.get_current_timezone(), get_language()
        self._units: dict[str, str] = {}

    def ago(
        self, moment: datetime, *, bare: bool = False, end: bool = False, focus: bool = True, prefix: str = ""
    ) -> SafeString:
        """How long ago, or in how long. For what can be said, see the tag of this name (runs/templatetags/look.py)."""
        text = prefix + words.since(self.now - moment, bare=bare, unit=self._unit)
        form = ' data-form="bare"' if bare else ' data-form="ago"'
        if prefix:
            form += f' data-prefix="{escape(prefix)}"'
        return self._drawn(moment, text, form=form, end=end, focus=focus)

    def on_clock(self, moment: datetime, form: str, *, end: bool = False, focus: bool = True) -> SafeString:
        """`form` is a date format that words.py knows."""
        text = words.dated(moment.astimezone(self._zone), form)
        return self._drawn(moment, text, end=end, focus=focus)

    def exact(self, moment: datetime) -> str:
        """Thu 26 Nov 2026, 10:18:02 CET."""
        local = moment.astimezone(self._zone)  # as the date format "D j M Y, H:i:s T", in a tenth of its time
        return f"{_day(local.date(), self._language)}, {local:%H:%M:%S %Z}"

    def _drawn(
        self, moment: datetime, text: str, *, form: str = "", end: bool = False, focus: bool = True
    ) -> SafeString:
        place, stop = " time-end" if end else "", ' tabindex="0"' if focus else ""
        return SafeString(
            f'<time class="time{place}" datetime="{moment.isoformat(timespec="seconds")}"'
            f' data-exact="{escape(self.exact(moment))}"{form}{stop}>{escape(text)}</time>'
        )

    def _unit(self, name: str) -> str:
        if name not in self._units:
            self._units[name] = _(name)
        return self._units[name]


def exact(moment: datetime) -> str:
    """Thu 26 Nov 2026, 10:18:02 CET."""
    return Moments(moment).exact(moment)


@lru_cache(maxsize=1_000)
def _day(day: date, _language: str | None) -> str:
    """In the language that is spoken now; it is named so that each has its own."""
    return _("%(weekday)s %(day)s %(month)s %(year)s") % {
        "weekday": WEEKDAYS_ABBR[day.weekday()],
        "day": day.day,
        "month": str(MONTHS_3[day.month]).title(),
        "year": day.year,
    }
