"""An author's markdown as HTML that can hold nothing but text: no images, no scripts, no addresses but web and mail."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from approvals.forms.values import visible

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
_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


def rendered(text: str) -> SafeString:
    """HTML for a page. Headings begin at h3, since the page has its own; raw HTML shows as the text it is."""
    tokens = _markdown.parse(visible(text[:LONGEST]))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _lowered(token)
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)


def _lowered(token: Token) -> str:
    return f"h{min(int(token.tag[1]) + 2, 5)}"
