"""The tags and filters that every page speaks through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from django.template import Context, Template
from django.test import RequestFactory, override_settings

from runs.models.entry import ENTRY_STATUSES
from runs.models.statuses import STATUSES
from runs.pages import words
from runs.templatetags import look

NOW = datetime(2026, 11, 26, 13, 18, 2, tzinfo=UTC)


def rendered(text: str, **context: object) -> str:
    return Template("{% load look %}" + text).render(Context({"now": NOW, **context}))


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(milliseconds=40), "40 ms"),
        (8.2, "8.2 s"),
        (41, "41 s"),
        (timedelta(seconds=101), "1 min 41 s"),
        (timedelta(hours=18, minutes=11, seconds=59), "18 h 11 min"),
        (timedelta(days=2), "2 d"),
        (timedelta(days=2, hours=3, minutes=4), "2 d 3 h"),
        (timedelta(), "0 ms"),
        (None, ""),
    ],
)
def test_a_span_is_said_in_its_two_largest_units(length: timedelta | float | None, said: str) -> None:
    assert words.span(length).replace("\u00a0", " ") == said


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (NOW - timedelta(hours=4, minutes=10), "4 h ago"),
        (NOW + timedelta(hours=3, minutes=58), "in 3 h 58 min"),
        (NOW, "now"),
        (NOW - timedelta(days=400), "400 d ago"),
    ],
)
def test_a_moment_is_said_relative_to_the_pages_clock(moment: datetime, said: str) -> None:
    drawn = ElementTree.fromstring(rendered("{% ago moment %}", moment=moment))
    assert drawn.text.replace("\u00a0", " ") == said


@override_settings(TIME_ZONE="Europe/Berlin")
def test_the_exact_moment_with_its_zone_can_be_reached_by_mouse_and_keyboard() -> None:
    drawn = ElementTree.fromstring(rendered("{% ago moment %}", moment=NOW - timedelta(hours=4)))
    assert drawn.get("data-exact") == "Thu 26 Nov 2026, 10:18:02 CET"
    assert drawn.get("tabindex") == "0"
    assert drawn.get("datetime") == "2026-11-26T09:18:02+00:00"


def test_inside_a_link_a_moment_is_no_second_stop_of_the_tab_key() -> None:
    drawn = ElementTree.fromstring(rendered("{% ago moment focus=False bare=True %}", moment=NOW))
    assert drawn.get("tabindex") is None
    assert drawn.get("data-form") == "bare"


def test_a_moment_that_is_not_there_draws_nothing() -> None:
    assert rendered("{% ago moment %}{% exact moment %}{{ moment|exact_words }}", moment=None) == ""


def test_every_icon_that_we_name_is_in_the_package() -> None:
    for name in look.ICONS:
        drawn = ElementTree.fromstring(look.icon(name))
        assert drawn.get("class") == "icon"
        assert drawn.get("aria-hidden") == "true"


def test_an_icon_that_we_do_not_name_is_an_error_at_once() -> None:
    with pytest.raises(KeyError, match="inbocks"):
        rendered('{% icon "inbocks" %}')


@pytest.mark.parametrize(
    "status", [*STATUSES, *ENTRY_STATUSES, "approved_with_edits", "auto_approved", "expired"]
)
def test_every_status_has_a_word_an_icon_and_a_colour_of_its_own(status: str) -> None:
    drawn = ElementTree.fromstring(rendered("{% status status %}", status=status))
    assert drawn.get("data-status") == status.replace("_", "-")
    assert drawn.find("svg") is not None
    assert "".join(drawn.itertext()).strip() == str(words.STATUSES[status].word)


def test_a_status_of_a_later_version_is_shown_by_its_name() -> None:
    drawn = ElementTree.fromstring(rendered("{% status 'sent_twice' %}"))
    assert "".join(drawn.itertext()).strip() == "Sent twice"


@pytest.mark.parametrize(
    ("full", "username", "letters"),
    [
        ("Ada Obi", "ada", "AO"),
        ("", "ada.obi", "AO"),
        ("", "mei", "ME"),
        ("José María Ruiz", "x", "JR"),
        ("", "", "?"),
    ],
)
def test_a_person_is_shown_by_two_letters(full: str, username: str, letters: str) -> None:
    person = SimpleNamespace(get_full_name=lambda: full, get_username=lambda: username)
    assert rendered("{{ person|initials }}", person=person) == letters


def test_what_people_typed_is_escaped_everywhere() -> None:
    bad = '"><script>alert(1)</script>'
    for text in (
        "{% avatar bad label=bad %}",
        "{% status bad %}",
        "{% status 'open' says=bad %}",
        "{{ bad|json_pretty }}",
        "{{ bad|person }}",
        "{% ago now prefix=bad %}",
    ):
        assert "<script" not in rendered(text, bad=bad)


def test_stored_values_are_read_without_their_marks() -> None:
    tree = {
        "price": {"$": "decimal", "v": "1.10"},
        "pairs": {"$": "dict", "v": [[1, "one"]]},
        "text": {"$": "offloaded", "sha256": "4f1c" + "0" * 60, "size": 18432},
        "words": ["a", None, True],
    }
    assert words.readable(tree) == {
        "price": "1.10",
        "pairs": {"1": "one"},
        "text": "blob 4f1c0000… (18\u00a0KB)",
        "words": ["a", None, True],
    }


def test_text_that_no_page_can_carry_is_written_as_escapes() -> None:
    """D3, on its way to a page."""
    shown = words.pretty({"odd": "a\x00b \ud800 ü"})
    assert shown.encode()
    assert "\\ud800" in shown
    assert "\x00" not in shown
    assert "ü" in shown


def test_a_preference_cookie_only_says_what_is_allowed() -> None:
    request = RequestFactory().get("/")
    request.COOKIES["theme"] = '"><b>'
    template = "{% chosen 'theme' 'light dark' as theme %}[{{ theme }}]"
    assert rendered(template, request=request) == "[]"
    request.COOKIES["theme"] = "dark"
    assert rendered(template, request=request) == "[dark]"


def test_the_browser_is_told_the_words_it_needs_to_keep_times_fresh() -> None:
    assert rendered("{% autoescape off %}{% time_words %}{% endautoescape %}").split("|") == [
        "d", "h", "min", "s", "now", "%(span)s ago", "in %(span)s",
    ]  # fmt: skip
