from __future__ import annotations

import pytest

from approvals.markdown import rendered


def test_words_are_formatted():
    html = rendered("**Two** risks:\n\n- one\n- two\n\n[source](https://vendor.example/a)")
    assert "<strong>Two</strong>" in html
    assert "<li>one</li>" in html
    assert '<a href="https://vendor.example/a" rel="noopener noreferrer nofollow">source</a>' in html


def test_headings_stay_below_those_of_the_page():
    assert rendered("# Big\n\n###### Small") == "<h3>Big</h3>\n<h5>Small</h5>\n"


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![spy](https://tracker.example/p.png)",
        "<a href='data:text/html,x' onclick=alert(1)>x</a>",
        "<style>body{display:none}</style>",
        '<form action="/approvals/1/decision/"><button>x</button></form>',
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](ftp://files.example/a)",
        "<file:///etc/passwd>",
    ],
)
def test_nothing_that_acts_or_loads_survives(evil):
    html = rendered(evil)
    for sign in (
        "<script",
        "<img",
        "<style",
        "<form",
        "<button",
        'href="javascript',
        'href="data',
        'href="ftp',
        'href="file',
        "<a href='",
    ):
        assert sign not in html
    assert "onclick=" not in html.replace("&lt;a href='data:text/html,x' onclick=alert(1)&gt;", "")


def test_signs_that_turn_the_text_around_are_spelled_out():
    assert "[U+202E]" in rendered("pay \u202e001 EUR")
