"""Each page of the gallery, in each of its states: what axe finds in both themes, and whether it fits."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from runs import registry
from tests.amounts import THOROUGH, dice
from tests.browser.conftest import WAIT, served
from tests.gallery.fill import fill
from tests.gallery.lives import GRAPHS
from tests.gallery.walk import cut_off, walk

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EVERY_RULE = {"resultTypes": ["violations"], "preload": False}  # else it fetches each stylesheet again
NARROW, TABLET = {"width": 320, "height": 800}, {"width": 768, "height": 1000}
CONTRAST = EVERY_RULE | {"runOnly": {"type": "rule", "values": ["color-contrast"]}}

# They differ from another one in their words alone: axe could find nothing else in them. Pictures are taken of all.
ALIKE = {
    *("approval-broken-form", "approval-call", "approval-claimed", "approval-decided", "approval-edited"),
    *("approval-in-words", "approval-one-card", "approval-own", "approval-rejected", "approval-two-votes"),
    *(
        "run-archived",
        "run-cancelled",
        "run-checkpoint",
        "run-child",
        "run-complete",
        "run-created",
        "run-fail",
        "run-kept",
    ),
    *("run-needs-migration", "run-poison", "run-retry", "run-wait", "runs-failed", "runs-no-match"),
    *("inbox", "inbox-all", "inbox-attention", "inbox-filtered", "inbox-teams", "inbox-unbroken"),
    *("bulk", "bulk-done", "notices", "away", "sign-in", "sign-in-code", "sign-in-failed"),
    *("account-spare-codes-new", "admin-erase", "admin-limits", "admin-schedules", "admin-stops"),
    *(
        "admin-factors",
        "account-passkey-remove",
        "account-no-password",
        "sign-in-password-kept",
        "sign-in-cancelled",
    ),
}


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    with served(os.environ | {"DJANGO_SETTINGS_MODULE": "tests.gallery.settings"}) as address:
        yield address


@pytest.fixture
def gallery() -> Iterator[dict]:
    try:
        yield fill()
    finally:
        for graph in GRAPHS:
            registry.remove(graph)


def test_every_page_is_accessible_in_both_themes_and_fits_320_and_768_pixels(
    chromium: Browser, site: str, gallery: dict
):
    context = chromium.new_context(
        viewport=NARROW, reduced_motion="reduce", bypass_csp=True
    )  # axe writes styles into the page
    context.set_default_timeout(WAIT)
    tab, found = context.new_page(), {}
    assert ALIKE <= gallery["pages"].keys()
    wanted = [name for name in gallery["pages"] if name not in ALIKE]
    if not THOROUGH:
        drawn = dice("pages").sample(wanted, len(wanted) // 8)
        wanted = [name for name in wanted if name in drawn]
    for name in walk(tab, site, gallery, wanted):
        faults = []
        for scheme, window, rules in (("light", NARROW, EVERY_RULE), ("dark", TABLET, CONTRAST)):
            tab.emulate_media(color_scheme=scheme)
            tab.set_viewport_size(window)
            faults += [f"{scheme}: {fault}" for fault in violations(tab, rules)]
            faults += [f"{window['width']} px: {fault}" for fault in cut_off(tab)]
        tab.set_viewport_size(NARROW)
        if faults:
            found[name] = faults
    context.close()
    assert found == {}


def violations(tab: Page, rules: dict) -> list[str]:
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(Axe().axe_script)
    told = tab.evaluate("(rules) => axe.run(rules).then((answer) => answer.violations)", rules)
    return [f"{one['id']}: {node['html'][:160]}" for one in told for node in one["nodes"]]
