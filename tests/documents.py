"""The pages of the documentation, read: sections, tables, links, and their Python as a module."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    return (ROOT / name).read_text()


def section(name: str, heading: str) -> str:
    """The text under a heading, up to the next one of any level."""
    parts = re.split(r"^#+ (.+)$", page(name), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert heading in found, f"{name} has no heading {heading!r}"
    return found[heading]


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without their heads."""
    tables = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def documented(name: str, heading: str) -> list[str]:
    """What the first columns of a section's tables name."""
    return [code for row in rows(section(name, heading)) for code in codes(row[0])]


def blocks(name: str) -> Iterator[tuple[int, str]]:
    """(line, source) of each block of Python on a page."""
    text = page(name)
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text[: block.start()].count("\n") + 1, block[1]


def run_blocks(name: str, module_name: str) -> types.ModuleType:
    """The page's Python as one module, run from top to bottom; errors carry the page's own lines."""
    module = types.ModuleType(module_name)
    sys.modules[module_name] = module  # annotations are looked up there
    for line, source in blocks(name):
        exec(compile("\n" * line + source, str(ROOT / name), "exec"), module.__dict__)
    return module


def links(at: Path) -> list[str]:
    found = ["".join(pair) for pair in LINK.findall(at.read_text())]
    return [target for target in found if not target.startswith(("http://", "https://"))]


def anchors(at: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", at.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
