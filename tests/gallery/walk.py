"""Goes through the gallery in a browser: opens each page as its person and does what belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.gallery.shown import Act, Shown

if TYPE_CHECKING:
    from playwright.sync_api import Page

HELD = "(form) => addEventListener('submit', (event) => event.target.matches(form) && event.preventDefault())"
CUT = """() => {
  const clips = (element) => {
    for (let each = element.parentElement; each && !each.matches(".app, body"); each = each.parentElement) {
      if (getComputedStyle(each).overflowX !== "visible") return true;  // it scrolls, or shows that there is more
    }
  };
  return [...document.querySelectorAll("main *")]
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 1 && !clips(each))
    .map((each) => `leaves the window: ${each.outerHTML.slice(0, 120)}`).slice(0, 3);
}"""
STALE = "(pick) => { pick.value = pick.value.replace(/[0-9]+$/, (number) => Number(number) + 1); }"
GROWN = "(input, size) => { input.removeAttribute('maxlength'); input.value = 'x'.repeat(size); }"


def walk(tab: Page, address: str, gallery: dict, names: list[str]) -> Iterator[str]:
    """Yields each name while its page is as it shall be seen."""
    for name in names:
        shown = Shown(*gallery["pages"][name])
        tab.goto("about:blank")  # what the page before still sends is its own person's
        tab.context.clear_cookies(name="sessionid")
        if shown.person:
            session = {"name": "sessionid", "value": gallery["sessions"][shown.person], "url": address}
            tab.context.add_cookies([session])
        tab.goto(address + shown.address, wait_until="load")
        for act in shown.does:
            _do(tab, act)
        yield name
        for act in shown.after:
            _do(tab, act)


def cut_off(tab: Page) -> list[str]:
    """What cannot be read at this width: the page scrolls sideways, or something leaves the window and is clipped."""
    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
        return ["the page scrolls sideways"]
    return tab.evaluate(CUT)


def _do(tab: Page, act: Act) -> None:
    verb, what, *more = act
    if verb == "hold":  # that form is not sent, though all of the page's own scripts have heard that it is
        tab.evaluate(HELD, what)
        return
    if verb == "wake":  # the page reads again what is live in it
        tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        return
    if verb == "key":
        tab.keyboard.press(what)
        return
    place = tab.locator(what).locator("visible=true").first if verb == "press" else tab.locator(what).first
    match verb, more:
        case "press", []:
            place.click()
        case "fill", [text]:
            place.fill(text)
        case "choose", [number]:
            place.select_option(index=int(number))
        case "see", []:
            place.wait_for()
        case "scroll", []:
            place.evaluate("(element) => element.scrollIntoView()")
        case "set", [name, value]:
            place.evaluate("(element, [name, value]) => element.setAttribute(name, value)", [name, value])
        case "tick", [many]:
            for number in range(int(many)):
                tab.locator(what).nth(number).check()
        case "stale", []:
            place.evaluate(STALE)
        case "grow", [size]:
            place.evaluate(GROWN, int(size))
        case _:
            raise ValueError(f"no such act: {act}")
