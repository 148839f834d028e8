"""An author's markdown as HTML that can hold nothing but text: no images, no scripts, no addresses but web and mail."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import nh3
from django.utils.safestring import SafeString, mark_safe

from approvals.forms.values import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 100_000

_TAGS = {
    *(
        "p",
        "br",
        "hr",
        "strong",
        "em",
        "s",
        "code",
        "pre",
        "blockquote",
        "ul",
        "ol",
        "li",
        "a",
        "h3",
        "h4",
        "h5",
    ),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def rendered(text: str) -> SafeString:
    """HTML for a page. Headings begin at h3, since the page has its own; raw HTML shows as the text it is."""
    markdown = _markdown()
    tokens = markdown.parse(visible(text[:LONGEST]))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _lowered(token)
    html = markdown.renderer.render(tokens, markdown.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)


@cache
def _markdown() -> MarkdownIt:
    """Made for the first text: most commands load the pages and show none."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


def _lowered(token: Token) -> str:
    return f"h{min(int(token.tag[1]) + 2, 5)}"
