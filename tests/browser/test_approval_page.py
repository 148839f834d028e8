"""What a reviewer does on an approval's page, in Chromium: by mouse, by keys, without scripts, on a phone."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.core import mail
from playwright.sync_api import Page, expect

from approvals.forms.values import same
from tests.approvals.cases import answer_of, ask, told
from tests.browser.conftest import SOON, arrived
from tests.runs.driving import do_due

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

BODY = "Dear Helen,\n\nCorvid is 38 % cheaper.\n\nUse Corvid for everyone else."
BRIEF = {
    "to": ["helen@example.com", "jose@example.com"],
    "subject": "Brief",
    "body": BODY,
    "copies": 7,
    "price": 1.0,
}
CALL = {
    "tool": "post_letter",
    "kind": "write",
    "key": "email:{run_id}:brief",
    "description": "One e-mail goes out.",
}


def brief(**more):
    return ask(BRIEF, **{"question": "Send the brief?", "call": CALL, "due": timedelta(hours=4), **more})


def path(approval) -> str:
    return approval.get_absolute_url()


def main_button(page: Page):
    return page.locator(".action-bar .button-primary")


def box(page: Page, name: str):
    return page.get_by_role("textbox", name=name, exact=True)


def test_an_edit_by_mouse_is_marked_shown_and_approved(open_as, ada):
    approval = brief()
    page = open_as(ada, path(approval))
    expect(main_button(page)).to_contain_text("Approve")
    box(page, "Subject").fill("Brief, second try")
    box(page, "Body").fill(BODY.replace("Use Corvid for everyone else", "Ask Corvid for an offer"))
    expect(main_button(page)).to_contain_text("Approve with edits")
    expect(page.locator("[data-change-count]")).to_have_text("2 fields changed")
    expect(page.locator(".word-diff ins").first).to_have_text("Ask")
    expect(page.locator(".outcome")).to_contain_text("Brief, second try")
    main_button(page).click()
    expect(page.locator(".toast")).to_contain_text("Starts in")
    answer = answer_of(approval)
    assert answer["outcome"] == "approved_with_edits"
    assert answer["payload"]["subject"] == "Brief, second try"
    assert same(answer["payload"]["price"], 1.0)


def test_from_a_mail_on_a_phone_it_is_two_taps_and_nothing_to_scroll(open_as, ada, address, settings):
    """Between two meetings, in ten seconds: the link, what happens to whom, and the button, all on one small screen."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "site_url": address}
    approval = brief(risk="high")
    do_due()
    (letter,) = mail.outbox
    link = re.search(rf"{address}/approvals/\S+", letter.body)[0]
    page = open_as(ada, link.removeprefix(address), width=360, height=640)
    shown = [
        page.get_by_role("heading", name="Send the brief?", level=1),
        page.get_by_text("One e-mail goes out."),
        *(page.locator(".outcome").get_by_text(to, exact=True) for to in BRIEF["to"]),
        page.locator(".outcome").get_by_text("Brief", exact=True),
        page.locator(".split-detail").get_by_text("High risk"),
        page.locator(".action-bar").get_by_role("button", name="Reject…"),
        main_button(page),
    ]
    for each in shown:
        expect(each.first).to_be_in_viewport(ratio=1)
    bar = page.locator(".action-bar").bounding_box()
    assert all(each.first.bounding_box()["y"] < bar["y"] for each in shown[:-2]), (
        "nothing of it lies under the bar"
    )
    main_button(page).tap()
    expect(page.locator(".toast")).to_contain_text("Starts in")
    assert answer_of(approval)["outcome"] == "approved"


def test_an_edited_long_text_and_json_are_shown_in_what_will_happen(open_as, ada):
    approval = ask({**BRIEF, "parts": [{"name": f"part {number}"} for number in range(40)]}, call=CALL)
    page = open_as(ada, path(approval))
    card = page.locator(".outcome")
    unedited = card.inner_html()
    box(page, "Body").fill(BODY.replace("Use Corvid for everyone else", "Ask Corvid for an offer"))
    box(page, "Parts 40 Name").or_(page.locator("[data-field='$.parts[39].name'] input")).fill("the last one")
    expect(card.get_by_role("group", name="What you changed in Body").locator("ins").first).to_have_text(
        "Ask"
    )
    expect(card.locator("del").first).to_have_text("Use")
    expect(card).to_contain_text("the last one")
    page.get_by_role("button", name="Discard").click()
    expect(card.locator("ins")).to_have_count(0)
    assert card.inner_html() == unedited
    box(page, "Body").fill("Dear Helen,\n\nnothing.")
    box(page, "Copies").fill("many")
    main_button(page).click()
    expect(page.locator("#trouble")).to_be_visible()
    expect(card.locator(".word-diff")).to_contain_text("nothing")
    page.get_by_role("button", name="Put back Body").click()
    expect(card.locator(".word-diff")).to_have_count(0)
    expect(card.locator(".fact-lead").first).to_contain_text("Dear Helen")


def test_an_edit_is_shown_in_what_will_happen_without_scripts(open_as, ada):
    page = open_as(ada, path(brief()), java_script_enabled=False)
    box(page, "Body").fill(BODY.replace("Use Corvid for everyone else", "Ask Corvid for an offer"))
    box(page, "Copies").fill("many")
    main_button(page).click()
    expect(page.locator("#trouble").get_by_role("link", name="Copies")).to_be_visible()
    expect(page.locator(".outcome .word-diff ins").first).to_have_text("Ask")


def test_a_refused_edit_names_its_fields_and_forgets_what_is_mended(open_as, ada):
    page = open_as(ada, path(brief()))
    box(page, "Copies").fill("many")
    box(page, "Price").fill("much")
    main_button(page).click()
    trouble = page.locator("#trouble")
    expect(trouble.get_by_role("link", name="Copies")).to_be_visible()
    expect(page.locator("form [aria-invalid=true]").first).to_be_focused()
    for name in ("Price", "Copies"):
        trouble.get_by_role("link", name=name).click()
        expect(box(page, name)).to_be_focused()
    expect(page.locator("[data-view=form] [data-error]")).to_have_count(2)
    box(page, "Price").fill("2")
    expect(page.locator("[data-view=form] [data-error]")).to_have_count(1)
    expect(box(page, "Price")).not_to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Put back Copies").click()
    expect(page.locator("[data-view=form] [data-error]")).to_have_count(0)


@pytest.mark.parametrize("widths", [(360,), (768, 960, 1200, 1280, 1320, 1366, 1440)], ids=["phone", "wider"])
def test_the_action_bar_keeps_its_buttons_on_one_row_and_a_phones_rail_gives_way_to_it(open_as, ada, widths):
    approval = brief()
    page = open_as(ada, width=widths[0])
    rail = page.get_by_role("link", name=re.compile("^Runs")).first
    expect(rail).to_be_visible()
    below = rail.evaluate("(link) => link.getBoundingClientRect().top > innerHeight / 2")
    assert below == (widths == (360,)), "the rail is the bar at the foot of a phone, and else at the left"
    page.goto(page.url + path(approval).removeprefix("/"))
    box(page, "Subject").fill("Brief, second try")
    box(page, "Copies").fill("9")
    expect(main_button(page)).to_contain_text("Approve with edits")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        bar = page.locator(".action-bar .button:visible")
        expect(bar).to_have_count(3)
        tops = bar.evaluate_all("(all) => all.map((each) => Math.round(each.getBoundingClientRect().top))")
        assert len(set(tops)) == 1, width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        expect(rail).to_be_visible(visible=width >= 720)


def test_an_edit_put_back_is_a_plain_approval(open_as, ada):
    approval = brief()
    page = open_as(ada, path(approval))
    box(page, "Copies").fill("9")
    page.get_by_role("button", name="Put back Copies").click()
    expect(main_button(page)).not_to_contain_text("edits")
    main_button(page).click()
    page.wait_for_url(re.compile("decided="))
    assert answer_of(approval)["outcome"] == "approved"


def test_keys_go_down_the_list_reject_and_undo(open_as, ada):
    first, second = brief(question="First?"), brief(question="Second?", due=timedelta(hours=5))
    page = open_as(ada)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    arrived(page, "First?")
    page.keyboard.press("e")
    expect(box(page, "To 1")).to_be_focused()
    page.keyboard.type("ar")  # typing fires no key
    page.keyboard.press("Escape")
    page.locator("#asked").click()
    page.keyboard.press("r")
    expect(page.get_by_label("What should the run know?")).to_be_focused()
    page.keyboard.type("Not a word of it is true.")
    page.get_by_role("button", name="Reject", exact=True).click()
    arrived(page, "Second?")
    assert answer_of(first)["reason"] == "Not a word of it is true."
    page.keyboard.press("z")
    arrived(page, "First?")
    expect(box(page, "To 1")).to_have_value("arhelen@example.com")  # what was typed is there again
    assert told(first) == ["opened", "reject by ada", "undone by ada"]
    page.keyboard.press("j")
    arrived(page, "Second?")
    page.keyboard.down("a")
    page.wait_for_url(re.compile("decided="))
    assert answer_of(second)["outcome"] == "approved"
    arrived(page, "First?")
    page.keyboard.down("a")  # it is held down still, and what opened meanwhile is not decided by that
    page.keyboard.up("a")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    assert answer_of(first) is None


def test_keys_go_up_claim_and_explain_themselves_and_can_be_switched_off(open_as, ada):
    first, second = brief(question="First?"), brief(question="Second?", due=timedelta(hours=5))
    page = open_as(ada, path(second))
    page.keyboard.press("k")
    arrived(page, "First?")
    page.keyboard.press("m")
    expect(page.get_by_role("button", name="Release", exact=True)).to_be_visible()
    arrived(page, "First?")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("a")  # under an open popover no key acts
    page.keyboard.press("Escape")
    page.locator("[popovertarget=account]").first.click()
    page.get_by_label("Single keys, such as a for approve").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.get_by_role("button", name="Claim", exact=True)).to_be_visible()
    assert told(first) == ["opened", "claimed by ada", "released by ada"]


def test_enter_in_a_field_decides_nothing(open_as, ada):
    approval = brief()
    page = open_as(ada, path(approval))
    box(page, "Subject").press("Enter")
    box(page, "Copies").press("Enter")
    expect(page.get_by_role("heading", name="Send the brief?", level=1)).to_be_visible()
    assert told(approval) == ["opened"]


def test_a_button_shows_that_its_form_is_under_way_and_is_not_pressed_twice(open_as, ada):
    approval, sent = ask(), []
    page = open_as(ada, path(approval))
    page.on(
        "request", lambda request: sent.append(request.url) if request.url.endswith("/decision/") else None
    )
    pressed = page.evaluate(
        """() => {
          const button = document.querySelector(".action-bar .button-primary");
          button.click();
          const shown = button.getAttribute("aria-busy");
          button.click();
          return shown;
        }"""
    )
    page.wait_for_url(re.compile("decided="))
    assert pressed == "true" and len(sent) == 1
    page.go_back()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def test_the_seconds_until_the_run_takes_an_answer_are_counted_down(open_as, ada, settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {"undo_seconds": 50}
    approval = brief()
    approval.decide(by=ada, verdict="approve")
    page = open_as(ada, path(approval))
    moment = page.locator(".banner time", has_text=re.compile(r"^in \d+\ss$"))
    for _ in range(4):  # the page is also read anew once, as it has just come
        shown = moment.text_content()
        expect(moment).not_to_have_text(shown, timeout=2_500)


def test_everything_works_without_scripts(open_as, ada):
    approval, other = brief(), brief(question="And this?", due=timedelta(hours=5))
    page = open_as(ada, path(approval), java_script_enabled=False)
    page.get_by_role("button", name="Remove To 1 helen@example.com").click()
    page.get_by_role("button", name="Add one To").click()
    page.locator(".list-field input:not([type=hidden])").last.fill("ada@example.com")
    box(page, "Copies").fill("twelve")
    page.get_by_role("button", name="Check and compare").click()
    expect(page.locator(".error").first).to_contain_text("Write a whole number")
    box(page, "Copies").fill("8")
    main_button(page).click()
    answer = answer_of(approval)
    assert same(answer["payload"], {**BRIEF, "to": ["jose@example.com", "ada@example.com"], "copies": 8})
    expect(page.get_by_role("heading", name="And this?", level=1)).to_be_visible()
    page.get_by_role("button", name="Undo").first.click()
    assert answer_of(approval) is None
    page.goto(page.url.split("?")[0].replace(str(approval.pk), str(other.pk)))
    page.get_by_role("button", name="Reject…").click()
    page.get_by_label("What should the run know?").fill("No.")
    page.get_by_role("button", name="Reject", exact=True).click()
    assert answer_of(other)["reason"] == "No."
    page.goto(page.url.split("/approvals/")[0] + path(other))
    expect(page.locator("[data-copy]")).not_to_have_count(0)
    for name in ("Copy", "Keys"):  # what a script alone can do is not offered
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_form_and_json_stay_in_step_and_types_survive(open_as, ada):
    """A13"""
    approval = brief()
    page = open_as(ada, path(approval))
    page.get_by_role("button", name="Remove To 1 helen@example.com").click()
    page.get_by_role("button", name="Add one To").click()
    page.keyboard.type("ada@example.com")
    page.get_by_text("JSON", exact=True).click()
    json_view = page.get_by_label("Arguments of post_letter")
    expect(json_view).to_have_value(re.compile("ada@example.com"))
    typed = json.loads(json_view.input_value())
    assert typed["to"] == ["jose@example.com", "ada@example.com"]
    assert '"price": 1.0' in json_view.input_value()
    json_view.fill(json.dumps({**typed, "copies": 3, "price": 2.5}))
    page.get_by_text("Form", exact=True).click()
    expect(box(page, "Copies")).to_have_value("3")
    box(page, "Price").fill("3")
    main_button(page).click()
    page.wait_for_url(re.compile("decided="))
    edited = {**BRIEF, "to": ["jose@example.com", "ada@example.com"], "copies": 3, "price": 3.0}
    assert same(answer_of(approval)["payload"], edited)


def test_json_that_cannot_be_read_is_said_while_it_is_typed(open_as, ada):
    page = open_as(ada, path(brief()))
    page.get_by_text("JSON", exact=True).click()
    page.get_by_label("Arguments of post_letter").fill('{"to":\n oops}')
    expect(page.locator("#json-error")).to_contain_text("Line 2, column 2")


def test_a_draft_outlives_a_reload_and_can_be_discarded(open_as, ada):
    page = open_as(ada, path(brief()))
    box(page, "Subject").fill("Brief, second try")
    expect(page.get_by_text("Draft kept")).to_be_visible()
    page.reload()
    expect(box(page, "Subject")).to_have_value("Brief, second try")
    expect(main_button(page)).to_contain_text("Approve with edits")
    page.get_by_role("button", name="Discard").click()
    expect(box(page, "Subject")).to_have_value("Brief")
    page.reload()
    expect(box(page, "Subject")).to_have_value("Brief")


def test_a_draft_for_an_earlier_text_is_offered_not_put_in(open_as, ada, bob):
    approval = brief(quorum=2)
    page = open_as(ada, path(approval))
    box(page, "Subject").fill("Ada’s words")
    approval.decide(by=bob, verdict="edit", payload={**BRIEF, "subject": "Bob’s words"})
    page.reload()
    expect(box(page, "Subject")).to_have_value("Bob’s words")
    expect(page.get_by_text("You have a draft for an earlier text")).to_be_visible()
    page.get_by_role("button", name="Put it into the form").click()
    expect(box(page, "Subject")).to_have_value("Ada’s words")


def test_two_people_press_at_the_same_time(open_as, ada, bob):
    """S9, MISSION B5"""
    approval = brief()
    one, other = open_as(ada, path(approval)), open_as(bob, path(approval))
    for page, words in ((one, "Ada’s words"), (other, "Bob’s words")):
        box(page, "Subject").fill(words)
    for page in (one, other):
        page.evaluate("document.querySelector('.action-bar .button-primary').click()")
    for page in (one, other):
        page.wait_for_load_state()
    decided = {"ada": (one, other, "Bob’s words"), "bob": (other, one, "Ada’s words")}
    expect(one.locator(".toast, #trouble").first).to_be_visible()
    expect(other.locator(".toast, #trouble").first).to_be_visible()
    winner, loser, kept = decided[answer_of(approval)["by"]]
    expect(winner.locator(".toast")).to_contain_text("Approved with edits")
    expect(loser.locator("#trouble")).to_contain_text("approved this with edits")
    expect(loser.locator("#kept-text")).to_have_value(re.compile(kept))
    assert sorted(told(approval))[:1] == ["edit by ada"] or "edit by bob" in told(approval)
    assert len(told(approval)) == 3  # opened, decided, refused: both attempts are in the trail


def test_a_second_browser_shows_by_itself_who_decided(open_as, ada, bob):
    """A11: and what was typed there stays."""
    approval = brief()
    page = open_as(ada, path(approval))
    box(page, "Subject").fill("Ada’s words")
    expect(page.locator("html")).to_have_attribute("data-socket", "open")
    approval.decide(by=bob, verdict="reject", reason="Not yet.")
    expect(page.get_by_role("heading", name="bob rejected this")).to_be_visible(timeout=SOON)
    expect(page.get_by_text("Nothing of yours was sent")).to_be_visible()
    expect(page.locator(".action-bar .button-primary")).to_have_count(0)
    expect(box(page, "Subject")).to_have_value("Ada’s words")


def test_a_text_that_moves_under_an_open_page_is_announced_and_not_decided_on(open_as, ada, bob):
    """B5: Bob puts another text on the table while Ada reads the first one."""
    approval = brief(quorum=2)
    page = open_as(ada, path(approval))
    expect(page.locator("html")).to_have_attribute("data-socket", "open")
    approval.decide(by=bob, verdict="edit", payload={**BRIEF, "subject": "Bob’s words"})
    expect(page.get_by_role("heading", name="This has changed while you looked at it")).to_be_visible(
        timeout=SOON
    )
    main_button(page).click()
    expect(page.locator("#trouble")).to_contain_text("bob approved this with edits")
    expect(box(page, "Subject")).to_have_value("Bob’s words")
    main_button(page).click()
    page.wait_for_url(re.compile("decided="))
    assert answer_of(approval)["payload"]["subject"] == "Bob’s words"


def test_what_is_new_waits_behind_its_number_while_the_list_stays(open_as, ada):
    brief(question="First?")
    page = open_as(ada)
    expect(page.locator("html")).to_have_attribute("data-socket", "open")
    brief(question="Second?")
    expect(page.get_by_role("link", name="1 new")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("heading", name="Second?")).to_have_count(0)
    expect(page.locator("#inbox-count")).to_contain_text("2")
    page.get_by_role("link", name="1 new").click()
    expect(page.get_by_role("heading", name="Second?")).to_be_visible()
