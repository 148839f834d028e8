"""What a README says, without the markup it is written in."""

from __future__ import annotations

import re

# An underline or overline of a reStructuredText or Markdown heading, a rule, or a table border.
RULE = re.compile(r"^\s*[-=~^\"'`#*+_.:|][-=~^\"'`#*+_.:|\s]{2,}$")
BLANK = re.compile(r"\n\s*\n")
TABLE_ROW = re.compile(r"^\s*\|.*\|\s*$")
BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
# A mark, then white space, then a capital, digit or quote; neither "e.g. Django" nor "v1.2" ends a sentence.
SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<=[.!?])\s+(?=[A-Z0-9\"'(])")


def paragraphs(markup: str) -> list[str]:
    """The prose of a README in reStructuredText, Markdown or HTML, one string a paragraph or bullet.

    Headings, images, badges, link targets, directives, tables and code are left out.
    """
    text = markup.replace("\r\n", "\n").expandtabs(4)
    text = re.sub(r"```.*?(?:```|\Z)", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    prose: list[str] = []
    after_code_mark = False
    for block in BLANK.split(text):
        lines = block.strip("\n").split("\n")
        indented = lines[0].startswith("   ")
        if indented and (after_code_mark or not BULLET.match(lines[0])):
            continue
        after_code_mark = lines[-1].rstrip().endswith("::") or lines[0].lstrip().startswith(".. ")
        prose.extend(_prose(lines))
    return prose


def sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, in order."""
    return [part.strip() for part in SENTENCE_END.split(paragraph) if part.strip()]


def printable(text: str) -> str:
    """`text` without control characters and halves of surrogate pairs, which mail cannot carry."""
    kept = text.encode("utf-8", "ignore").decode("utf-8")
    return "".join(letter for letter in kept if letter in "\n\t" or letter.isprintable())


def literal(text: str) -> str:
    """`text` on one line, written so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>()#+\-!|~&])", r"\\\1", " ".join(text.split()))


def _prose(lines: list[str]) -> list[str]:
    items: list[list[str]] = [[]]
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and RULE.match(lines[number + 1])
        aside = line.lstrip().startswith(("#", ".. ", ":", ">>>", "$ ")) or TABLE_ROW.match(line)
        if aside or underlined or RULE.match(line):
            items.append([])
        elif BULLET.match(line):
            items.append([BULLET.sub("", line)])
        else:
            items[-1].append(line.strip())
    texts = (_without_inline_markup(" ".join(item)) for item in items)
    return [text for text in texts if re.search(r"\w+\s+\w+", text)]


def _without_inline_markup(text: str) -> str:
    text = re.sub(r"\[?!\[[^\]]*\]\([^)]*\)(?:\]\([^)]*\))?", "", text)  # Markdown image, also inside a link
    text = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)  # Markdown link
    text = re.sub(r"`([^`<]+?)\s*<[^`>]+>`__?", r"\1", text)  # reStructuredText link
    text = re.sub(r"<(https?://[^>]+)>", r"\1", text)
    text = re.sub(r"</?[A-Za-z][^>]*>", "", text)
    text = re.sub(r":[a-z:]+:`([^`]+)`", r"\1", text)  # reStructuredText role
    text = re.sub(r"\|[\w. -]+\|_{0,2}", "", text)  # reStructuredText substitution
    text = re.sub(r"(``|`|\*\*|__)(.+?)\1_{0,2}", r"\2", text)
    text = re.sub(r"(?<!\w)[*_]([^*_\s][^*_]*)[*_](?!\w)", r"\1", text)
    text = text.replace("::", ":")
    return re.sub(r"\s+", " ", text).strip()
