"""LangChain's requests in a real browser: each action is a card, decided by keyboard alone, and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.approvals.cases import answer_of, ask, told
from tests.approvals.langchain_requests import BATCHED, BY_CALL, BY_CALL_ANSWERS, PAY
from tests.browser.test_approval_page import box, main_button, path

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LEAPS = 40  # more stops for the Tab key than a page of two cards has


def card(page: Page, name: str):
    return page.get_by_role("group", name=re.compile(rf"^(\d\. )?{name}$"))


def tab_to(page: Page, place) -> None:
    """By the Tab key, as far as it takes."""
    for _ in range(LEAPS):
        if place.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the Tab key does not come there")


def test_two_cards_are_decided_by_keyboard_alone(open_as, ada):
    approval = ask(BATCHED)
    page = open_as(ada, path(approval))
    page.keyboard.press("e")
    expect(card(page, "pay").get_by_role("textbox", name="To")).to_be_focused()
    words = card(page, "wipe").get_by_label("Your reason, or your answer")
    expect(words).to_be_hidden()
    tab_to(page, card(page, "pay").get_by_role("radio", name="Approve"))
    page.keyboard.press("Space")
    tab_to(page, card(page, "wipe").get_by_role("radio", name="Reject"))
    page.keyboard.press("Space")
    expect(words).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(card(page, "wipe").get_by_role("radio", name="Answer in words")).to_be_checked()
    page.keyboard.press("Tab")
    expect(words).to_be_focused()
    page.keyboard.type("It is empty. ask r")  # typing fires no key
    tab_to(page, main_button(page))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("decided="))
    answered = {"decisions": [{"type": "approve"}, {"type": "respond", "message": "It is empty. ask r"}]}
    assert answer_of(approval)["payload"] == answered


def test_what_is_not_chosen_is_asked_for_and_nothing_typed_is_lost(open_as, ada):
    approval = ask(BATCHED)
    page = open_as(ada, path(approval))
    box(page, "To").fill("helen")
    page.keyboard.press("Escape")
    main_button(page).click()
    expect(page.locator("#trouble")).to_be_visible()
    expect(card(page, "pay").get_by_text("Say what is to be done with this one.")).to_be_visible()
    expect(box(page, "To")).to_have_value("helen")
    assert told(approval) == ["opened"]


def test_a_card_of_one_call_is_edited_by_keyboard_and_keeps_the_tools_name(open_as, ada):
    approval = ask(BY_CALL, schema=BY_CALL_ANSWERS)
    page = open_as(ada, path(approval))
    page.keyboard.press("e")
    expect(box(page, "To")).to_be_focused()
    tab_to(page, box(page, "Amount"))
    page.keyboard.press("Control+a")
    page.keyboard.type("9")
    tab_to(page, page.get_by_role("radio", name="Approve"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Edit")).to_be_checked()
    page.keyboard.press("a")  # a chosen radio button is no typing: the key decides
    page.wait_for_url(re.compile("decided="))
    answered = answer_of(approval)["payload"]
    assert answered["type"] == "edit" and answered["edited_action"]["name"] == "pay"
    assert answered["edited_action"]["args"] | {"note": ""} == {**PAY, "amount": 9, "note": ""}


def test_cards_work_without_scripts(open_as, ada):
    approval = ask(BATCHED)
    page = open_as(ada, path(approval), java_script_enabled=False, width=360)
    main_button(page).click()
    expect(page.get_by_text("Say what is to be done with this one.").first).to_be_visible()
    box(page, "Amount").fill("9")
    card(page, "pay").get_by_role("radio", name="Edit").check()
    card(page, "wipe").get_by_role("radio", name="Reject").check()
    page.get_by_label("Your reason, or your answer").fill("Not /etc.")
    main_button(page).click()
    edited = {"type": "edit", "edited_action": {"name": "pay", "args": {**PAY, "amount": 9}}}
    expect(page.locator(".toasts-decided")).to_be_visible()
    assert answer_of(approval)["payload"] == {
        "decisions": [edited, {"type": "reject", "message": "Not /etc."}]
    }
