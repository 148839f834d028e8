"""Takes the gallery's pictures: each page at each width, in each theme, two in German; and sheets of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from tests.gallery.walk import cut_off, walk

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS, HEIGHT = (360, 768, 1440), 900
THEMES = ("light", "dark")
LOOKS = [(width, theme, "en") for width in WIDTHS for theme in THEMES]
LOOKS += [(width, "light", "de") for width in (WIDTHS[0], WIDTHS[-1])]
ON_A_SHEET = 40


def pictures(
    browser: str,
    address: str,
    gallery: dict[str, Any],
    out: Path,
    *,
    only: str = "",
    looks: str = "",
    whole: bool = False,
    say: Callable[[str], None],
) -> Iterator[Path]:
    """Yields each sheet; what does not fit its width is told."""
    names = [name for name in gallery["pages"] if name.startswith(tuple(only.split(",")))]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        for width, theme, language in LOOKS:
            folder = out / f"{width}-{theme}-{language}"
            if not folder.name.startswith(tuple(looks.split(","))):
                continue
            folder.mkdir(exist_ok=True)
            window = {"width": width, "height": HEIGHT}
            context = chromium.new_context(
                viewport=window, color_scheme=theme, reduced_motion="reduce", locale=language
            )
            tab = context.new_page()
            for name in walk(tab, address, gallery, names):
                for fault in cut_off(tab):
                    say(f"{name} at {width} px: {fault}")
                tab.screenshot(path=folder / f"{name}.png", full_page=whole)
            for first in range(0, len(names), ON_A_SHEET):
                yield _sheet(tab, folder, names[first : first + ON_A_SHEET], first, width)
            context.close()
        chromium.close()


def _sheet(tab: Page, folder: Path, names: list[str], first: int, width: int) -> Path:
    """Pictures of a folder on one page, small, each with its name."""
    each = 200 if width < 500 else 400
    shown = "".join(
        f'<figure><img src="{name}.png" width={each}><figcaption>{name}</figcaption></figure>'
        for name in names
    )
    style = "body{display:flex;flex-wrap:wrap;gap:8px;font:12px sans-serif;background:#888}figure{margin:0}"
    page = folder / f"sheet-{first:03}.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{shown}")
    size = tab.viewport_size
    tab.set_viewport_size({"width": 1660, "height": 900})
    tab.goto(page.as_uri(), wait_until="load")
    sheet = folder.parent / f"{folder.name}-{first:03}.png"
    tab.screenshot(path=sheet, full_page=True)
    tab.set_viewport_size(size)
    return sheet
