"""Template tags and filters of the product's look: icons, moments, people, statuses, JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache
from html import escape
from typing import Any

from django.conf import settings
from django.template import Context, Library
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from lucide.templatetags.lucide import lucide

from runs.pages import moments, plain, words

register = Library()

# Our names for what an icon means, and the lucide icon that draws it.
ICONS = {
    "admin": "sliders-horizontal",
    "agent": "bot",
    "arrow": "arrow-right",
    "back": "chevron-left",
    "bookmark": "bookmark",
    "branch": "git-branch",
    "brand": "list-checks",
    "cancelled": "ban",
    "check": "check",
    "checkpoint": "square",
    "child": "git-fork",
    "clock": "clock",
    "comment": "message-square",
    "completed": "circle-check",
    "copy": "copy",
    "created": "circle-dashed",
    "digest": "hash",
    "down": "chevron-down",
    "edit": "pencil",
    "effect": "arrow-right-to-line",
    "expired": "calendar-clock",
    "failed": "octagon-alert",
    "file": "file-text",
    "filter": "list-filter",
    "find": "search",
    "held": "lock",
    "help": "circle-question-mark",
    "in-doubt": "badge-question-mark",
    "inbox": "inbox",
    "keys": "keyboard",
    "kill": "zap-off",
    "left": "chevron-left",
    "link": "external-link",
    "lock": "lock",
    "mail": "mail",
    "monitor": "monitor",
    "moon": "moon",
    "more": "ellipsis",
    "offline": "wifi-off",
    "passkey": "key-round",
    "plus": "plus",
    "rejected": "circle-x",
    "resume": "play",
    "retrying": "rotate-cw",
    "right": "chevron-right",
    "risk": "triangle-alert",
    "running": "circle-play",
    "runs": "workflow",
    "search": "search",
    "send": "send",
    "shield": "shield-check",
    "sign-in": "log-in",
    "sign-out": "log-out",
    "signal": "radio",
    "step": "square",
    "sun": "sun",
    "timer": "timer",
    "undo": "undo-2",
    "user": "user",
    "users": "users",
    "value": "database",
    "waiting": "hourglass",
    "x": "x",
}

# What the tags print again in the browser as time passes; static/js/time.js reads it.
_SPAN_UNITS = ("d", "h", "min", "s")


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Draw one of our icons, hidden from screen readers; `extra` adds classes. Unknown names raise KeyError."""
    return _drawn(name, f"icon {extra}".strip())


@register.simple_tag(takes_context=True)
def ago(
    context: Context,
    moment: datetime | None,
    *,
    bare: bool = False,
    end: bool = False,
    focus: bool = True,
    prefix: str = "",
) -> SafeString | str:
    """A moment as people say it, the exact one on hover and focus.

    bare: "4 h" instead of "4 h ago", for columns. end: the hint opens to the left, for the right edge.
    focus=False: inside a link, where a second stop for the Tab key would be in the way.
    The page's `now` is used where the context has one, so that one page has one clock.
    """
    if moment is None:
        return ""
    now = context.get("now") or timezone.now()
    return moments.Moments(now).ago(moment, bare=bare, end=end, focus=focus, prefix=prefix)


@register.simple_tag
def exact(
    moment: datetime | None, *, end: bool = False, focus: bool = True, form: str = "H:i:s"
) -> SafeString | str:
    """A moment on the clock, 10:18:02, with day and zone on hover and focus. `form` is a Django date format."""
    return "" if moment is None else moments.Moments(moment).on_clock(moment, form, end=end, focus=focus)


@register.filter
def exact_words(moment: datetime | None) -> str:
    """Thu 26 Nov 2026, 10:18:02 CET: for texts that cannot hold an element."""
    return moments.exact(moment) if moment else ""


@register.filter
def retold(text: str) -> str:
    """A line that the engine wrote into a row, in the reader's language."""
    return plain.retold(text)


@register.filter
def day(calendar_day: date) -> str:
    """Thu 26 Nov 2026."""
    return words.dated(calendar_day, "D j M Y")


@register.filter
def duration(length: timedelta | float | None) -> str:
    """A timedelta, or seconds, in its two largest units."""
    return words.span(length)


@register.filter
def short_duration(length: timedelta) -> str:
    """A timedelta in its largest unit."""
    return words.short_span(length)


@register.filter
def person(someone: Any) -> str:
    """A person's full name, or user name."""
    return words.person_name(someone)


@register.filter
def actor(name: str) -> str:
    """Who acted, by the name that a row has for them."""
    return plain.actor(name)


@register.filter
def initials(someone: Any) -> str:
    """Two letters for a person."""
    return words.initials(someone)


@register.simple_tag
def avatar(someone: Any, *, large: bool = False, agent: bool = False, label: str = "") -> SafeString:
    """A person's initials in a circle, an agent's icon in a square; read out only if `label` is given."""
    size = " avatar-lg" if large else ""
    voice = format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')
    if agent:
        return format_html('<span class="avatar avatar-agent{}" {}>{}</span>', size, voice, icon("agent"))
    return format_html('<span class="avatar{}" {}>{}</span>', size, voice, words.initials(someone))


@register.inclusion_tag("shared/_status.html")
def status(status: str, *, chip: bool = False, says: str = "") -> dict[str, Any]:
    """A status with colour, icon and word; `says` replaces the word, as in "Waiting for you"."""
    known = words.status_word(status)
    return {"slug": known.slug, "icon": known.icon, "word": says or known.word, "chip": chip}


@register.filter
def status_slug(status: str) -> str:
    """The value of data-status for a row's status."""
    return words.status_word(status).slug


@register.filter
def status_icon(status: str) -> str:
    """The icon's name for a row's status."""
    return words.status_word(status).icon


@register.filter
def status_label(status: str) -> str:
    """The word for a row's status."""
    return str(words.status_word(status).word)


@register.simple_tag
def options(values: Iterable[Any], chosen: str = "") -> SafeString:
    """What a list offers to choose from: each value, or pair of a value and its word; `chosen` is marked."""
    return SafeString("".join(_option(value, chosen) for value in values))


def _option(value: Any, chosen: str) -> str:
    if not isinstance(value, tuple):
        return f"<option{' selected' if value == chosen else ''}>{escape(str(value))}</option>"
    value, word = value
    marked = " selected" if value == chosen else ""
    return f'<option value="{escape(str(value))}"{marked}>{escape(str(word))}</option>'


@register.filter
def byte_size(count: int) -> str:
    """Bytes in a unit that keeps the number short."""
    return words.size(count)


@register.filter
def json_pretty(value: Any) -> str:
    """A value as indented JSON."""
    return words.pretty(value)


@register.simple_tag(takes_context=True)
def chosen(context: Context, cookie: str, allowed: str) -> str:
    """The value of a preference cookie if it is one of the words in `allowed`, else an empty text."""
    request = context.get("request")
    value = request.COOKIES.get(cookie, "") if request is not None else ""
    return value if value in allowed.split() else ""


@register.simple_tag
def time_words() -> str:
    """The words of relative times, by `|`: units from days to seconds, now, ago, in. For static/js/time.js."""
    units = [_(unit) for unit in _SPAN_UNITS]
    return "|".join([*units, _("now"), _("%(span)s ago"), _("in %(span)s")])


@lru_cache(maxsize=256)
def _drawn(name: str, classes: str) -> SafeString:
    drawn = lucide(ICONS[name], size=None, aria_hidden="true", **{"class": classes})
    return mark_safe(" ".join(drawn.split()).replace("> <", "><"))


def drawn_at(name: str, x: float, y: float, size: float = 16) -> SafeString:
    """An icon placed inside an SVG drawing, in the drawing's own units."""
    drawn = lucide(ICONS[name], size=size, x=f"{x:g}", y=f"{y:g}", aria_hidden="true", **{"class": "icon"})
    return mark_safe(" ".join(drawn.split()).replace("> <", "><"))


@register.simple_tag
def page_language() -> str:
    """The language this page is written in."""
    return get_language() or "en"


@register.simple_tag(takes_context=True)
def languages(context: Context) -> list[tuple[str, str, bool]]:
    """Code and own name of each language of ours, and whether the reader chose it; none is chosen: the browser's."""
    request = context.get("request")
    chosen_one = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "") if request is not None else ""
    return [(code, name, code == chosen_one) for code, name in settings.LANGUAGES]
