"""The inbox in a real browser: selecting, deciding together, filters, drafts that follow a person."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Approval, KeptDraft, SavedFilter
from tests.amounts import THOROUGH
from tests.approvals.cases import MAIL, answer_of, ask, told
from tests.browser.conftest import SOON, arrived
from tests.browser.test_cards import tab_to
from tests.browser.test_sign_in import hashed

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TOGETHER, MANY = 12, 20 if THOROUGH else 15


def letters(many: int) -> list[Approval]:
    return [
        ask({**MAIL, "copies": number}, question=f"Send {number}?", due=timedelta(hours=number + 1))
        for number in range(many)
    ]


def ticked(page: Page) -> list[bool]:
    return page.locator("[data-pick]").evaluate_all("(all) => all.map((each) => each.checked)")


def row(page: Page, title: str):
    return page.locator(".inbox-row").filter(has_text=title)


def path(approval: Approval) -> str:
    return approval.get_absolute_url()


def test_twenty_are_decided_by_keyboard_alone(open_as, ada):
    """B6: twelve together, eight one after the other, some rejected; nothing is touched with a mouse or by a script."""
    approvals = letters(MANY)
    page = open_as(ada)
    for _ in approvals[:TOGETHER]:
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.locator("[data-announce]")).to_have_text(f"{TOGETHER} selected")
    tab_to(page, page.get_by_role("button", name="Decide together…"))
    page.keyboard.press("Enter")
    number = page.get_by_label(f"Type {TOGETHER} to go on")
    expect(number).to_be_visible()
    tab_to(page, number)
    page.keyboard.type(f"{TOGETHER}")
    page.keyboard.press("Enter")
    expect(number).to_be_visible()  # Enter in a field decides nothing
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    arrived(page, f"{TOGETHER} approved")
    page.keyboard.press("z")
    arrived(page, f"{TOGETHER} taken back")
    assert Approval.objects.open().count() == MANY
    tab_to(page, page.get_by_role("link", name="Go on in the inbox"))
    page.keyboard.press("Enter")
    arrived(page, "Inbox")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for position in range(MANY):
        arrived(page, f"Send {position}?")  # the next one opens by itself
        if position % 5:
            page.keyboard.press("a")
        else:
            page.keyboard.press("r")
            expect(page.get_by_label("What should the run know?")).to_be_focused()
            page.keyboard.type("Not now.")
            tab_to(page, page.get_by_role("button", name="Reject", exact=True))
            page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    answers = [answer_of(each) for each in approvals]
    assert [each["outcome"] for each in answers] == ["rejected", *["approved"] * 4] * (MANY // 5)
    assert {each["reason"] for each in answers[::5]} == {"Not now."}


def test_shift_selects_all_between_and_escape_nothing(open_as, ada):
    letters(6)
    page = open_as(ada)
    boxes = page.locator("[data-pick]")
    boxes.nth(1).check(force=True)
    boxes.nth(4).click(force=True, modifiers=["Shift"])
    assert ticked(page) == [False, True, True, True, True, False]
    expect(page.locator(".pick-bar")).to_be_visible()
    boxes.nth(2).click(force=True)
    assert ticked(page) == [False, True, False, True, True, False]
    page.get_by_role("button", name="All here").click()
    assert all(ticked(page))
    page.locator("h1").click()
    page.keyboard.press("Escape")
    assert not any(ticked(page))
    expect(page.locator(".pick-bar")).to_be_hidden()


def test_what_was_selected_stays_so_while_the_list_is_read_again(open_as, ada, bob):
    """A12: live, and frozen as it was: what somebody changes meanwhile is left out of the decision."""
    first, second = letters(2)
    page = open_as(ada, "/?scope=teams")
    expect(page.locator("html")).to_have_attribute("data-socket", "open")
    for number in (0, 1):
        page.locator("[data-pick]").nth(number).check(force=True)
    second.assign(by=bob, to=bob)
    expect(row(page, "Send 1?").locator(".avatar")).to_have_count(1, timeout=SOON)
    assert ticked(page) == [True, True]
    page.get_by_role("button", name="Decide together…").click()
    expect(page.get_by_text("1 of 2 is approved as it stands.")).to_be_visible()
    page.get_by_role("button", name="Approve 1").click()
    expect(page.get_by_role("heading", name="1 approved, 1 not")).to_be_visible()
    assert [told(each)[-1] for each in (first, second)] == ["approve by ada", "refused by ada"]


def test_all_of_it_works_without_scripts(open_as, ada):
    first, second = letters(2)
    page = open_as(ada, java_script_enabled=False)
    for number in (0, 1):
        page.locator("[data-pick]").nth(number).check(force=True)
    expect(page.locator(".pick-bar")).to_be_visible()
    page.get_by_role("button", name="Decide together…").click()
    expect(page.get_by_role("columnheader", name="Copies")).to_be_visible()
    page.locator("#bulk").get_by_text("Reject", exact=True).click()
    expect(page.get_by_role("button", name="Approve 2")).to_be_hidden()
    page.get_by_role("button", name="Reject 2").click()
    expect(page.get_by_text("Choose or write a reason.")).to_be_visible()
    page.get_by_label("What should the runs know?").fill("Not now.")
    page.get_by_role("button", name="Reject 2").click()
    expect(page.get_by_role("heading", name="2 rejected")).to_be_visible()
    assert {answer_of(each)["reason"] for each in (first, second)} == {"Not now."}
    page.get_by_role("button", name="Undo all 2").click()
    page.get_by_role("link", name="Go on in the inbox").click()
    page.get_by_role("button", name="Filter").last.click()
    page.get_by_label("Due", exact=True).select_option("within an hour")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".inbox-row")).to_have_count(1)
    page.get_by_role("button", name="Save filter").click()
    page.get_by_label("Keep this list as").fill("Soon")
    page.get_by_role("button", name="Keep", exact=True).click()
    assert SavedFilter.objects.get().query == "?due=1h"
    expect(page.get_by_role("button", name="Soon")).to_be_visible()
    page.get_by_role("link", name=re.compile("Due within an hour")).click()
    expect(page.locator(".inbox-row")).to_have_count(2)


def test_a_draft_follows_its_author_to_another_browser(open_as, ada):
    approval = letters(1)[0]
    page = open_as(ada, path(approval))
    with page.expect_response(re.compile("/draft/kept/")):
        page.get_by_role("textbox", name="Subject", exact=True).fill("Second try")
    page.get_by_role("button", name="Reject…").click()
    with page.expect_response(re.compile("/draft/kept/")):
        page.get_by_label("What should the run know?").fill("Too lo")
    other = open_as(ada, path(approval), width=360)
    expect(other.get_by_role("textbox", name="Subject", exact=True)).to_have_value("Second try")
    expect(other.locator(".action-bar .button-primary")).to_contain_text("Approve with edits")
    other.get_by_role("button", name="Reject…").click()
    expect(other.get_by_label("What should the run know?")).to_have_value("Too lo")
    other.keyboard.press("Escape")
    with other.expect_response(lambda answer: "/draft/kept/" in answer.url and answer.status == 204):
        other.get_by_role("button", name="Discard").click()
    assert KeptDraft.objects.get().json == ""


def test_a_draft_typed_while_the_line_is_gone_is_sent_later(open_as, ada):
    approval = letters(1)[0]
    page = open_as(ada, path(approval))
    page.route("**/draft/kept/", lambda route: route.abort())
    page.get_by_role("textbox", name="Subject", exact=True).fill("Second try")
    page.wait_for_function("Object.keys(localStorage).some((name) => name.startsWith('draft:'))")
    page.unroute("**/draft/kept/")
    with page.expect_response(lambda answer: "/draft/kept/" in answer.url and answer.status == 204):
        page.reload()
    expect(page.get_by_role("textbox", name="Subject", exact=True)).to_have_value("Second try")
    assert json.loads(KeptDraft.objects.get().json)["subject"] == "Second try"


def test_what_is_typed_after_the_session_is_over_is_there_after_signing_in(open_as, ada):
    ada.password = hashed("ada")
    ada.save()
    approval = letters(1)[0]
    page = open_as(ada, path(approval))
    comment, reason = page.get_by_label("Comment", exact=True), page.get_by_label("What should the run know?")

    def sign_in():
        page.get_by_label("User name").fill("ada")
        page.get_by_label("Password").fill("ada")
        page.keyboard.press("Enter")
        arrived(page, "Send 0?")

    page.context.clear_cookies(name="sessionid")
    comment.fill("Ask Helen first")
    page.get_by_role("button", name="Comment", exact=True).click()
    sign_in()
    expect(comment).to_have_value("Ask Helen first")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#approval-people").get_by_text("Ask Helen first")).to_be_visible()
    page.reload()
    expect(comment).to_have_value("")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Reject…").click()
    reason.fill("Too long")
    page.locator("#reject").get_by_role("button", name="Reject", exact=True).click()
    sign_in()
    page.get_by_role("button", name="Reject…").click()
    expect(reason).to_have_value("Too long")


def test_the_pill_of_new_ones_keeps_what_is_open(open_as, ada):
    first = ask(question="First?")
    page = open_as(ada, path(first))
    expect(page.locator("html")).to_have_attribute("data-socket", "open")
    ask(question="Second?")
    page.get_by_role("link", name="1 new").click(timeout=SOON)
    expect(page.get_by_role("heading", name="First?", level=1)).to_be_visible()
    expect(row(page, "Second?")).to_be_visible()
