"""Prose out of READMEs, in the markups that they are written in."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from examples.plain_text import literal, paragraphs, printable, sentences

RESTRUCTURED = """\
=====
Title
=====

.. image:: https://img.example/badge.svg
   :target: https://ci.example

|downloads| A `queue <https://q.example>`__ for **Django** with ``tasks``
on two lines.

Install
-------

- First thing to do
- Second thing to do::

    $ pip install it-all now

.. code:: python

    import this or that

After the code, see :ref:`the docs`.
"""
MARKDOWN = """\
# The Title

[![build](https://img.example/b.svg)](https://ci.example) ![logo picture](logo.png)

A [client](https://c.example) with *style* and `code`, <em>quickly</em>.

```python
import this and that
```

| Name | Value |
|------|-------|
| a b  | c d   |

<!-- a comment
over lines -->
* One more point
1. And a numbered one
"""


def test_restructured_text_gives_its_prose():
    assert paragraphs(RESTRUCTURED) == [
        "A queue for Django with tasks on two lines.",
        "First thing to do",
        "Second thing to do:",
        "After the code, see the docs.",
    ]


def test_markdown_gives_its_prose():
    assert paragraphs(MARKDOWN) == [
        "A client with style and code, quickly.",
        "One more point",
        "And a numbered one",
    ]


@pytest.mark.parametrize(
    "markup", ["", "\n\n\n", "-----", "```", "```\nnever closed", "| a |", "\x00", "::", "..."]
)
def test_no_prose_gives_none(markup):
    assert paragraphs(markup) == []


def test_names_with_underscores_and_versions_stay_whole():
    assert paragraphs("Use async_task or channels_redis with v1.2 of * things * here.") == [
        "Use async_task or channels_redis with v1.2 of * things * here."
    ]


def test_sentences_end_at_marks_that_a_new_one_follows():
    text = 'It runs on 3.10. "Really!" It does, e.g. Django v1.2 does. see this. Done?'
    assert sentences(text) == [
        "It runs on 3.10.",
        '"Really!" It does, e.g. Django v1.2 does. see this.',
        "Done?",
    ]


def test_what_mail_cannot_carry_is_left_out():
    assert printable("a\x00b\ud800c\x1b[31m\td\ne é 漢 \U0001f600") == "abc[31m\td\ne é 漢 \U0001f600"


@pytest.mark.parametrize(
    "text", ["a|b", "*x* _y_ `z`", "<script>", "[a](b)", "# h", "1. x ~~y~~ &amp; \\ !", "a\n\n- b"]
)
def test_text_of_others_is_shown_as_it_is(text):
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
    row = markdown.render(f"| A | B |\n|---|---|\n| {literal(text)} | end |\n")

    shown = " ".join(text.split())
    escaped = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<td>{escaped}</td>\n<td>end</td>" in row
