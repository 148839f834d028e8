"""Stages, hand over, deadline, signature, comments with files, and quiet hours in a real browser."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import expect

from approvals.models import Approval, NoticeWish
from tests.approvals.cases import answer_of, ask, told
from tests.approvals.test_stages import stage
from tests.browser.test_approval_page import path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def staged(**more):
    stages = [stage("pm", quorum=2), stage("a-group-whose-name-is-long-" * 4), stage("board", needed=False)]
    return ask(reviewers=(), stages=stages, due=timedelta(hours=8), **more)


def test_a_phone_without_scripts_hands_over_and_moves_the_deadline(open_as, ada, bob, eve):
    """At 320 px nothing scrolls sideways, also in what opens."""
    approval = staged()
    page = open_as(ada, path(approval), width=320, java_script_enabled=False)
    page.get_by_role("button", name="Move the deadline…").click()
    page.get_by_label("4 hours later").check()
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_text("You moved the deadline")).to_be_visible()
    page.get_by_role("button", name="Hand over…").click()
    page.get_by_label("Your part in it, to somebody else").fill("eve")
    page.get_by_role("button", name="Give").click()
    expect(page.get_by_text("You gave your part in this to eve")).to_be_visible()
    page.get_by_role("button", name="Take it back from eve").click()
    expect(page.get_by_role("button", name="Hand over…")).to_be_visible()
    assert told(approval) == ["opened", "extended by ada", "delegated by ada", "recalled by ada"]


def test_one_signs_in_a_stage_with_ones_password(open_as, ada, bob):
    approval = staged(sign=True)
    approval.decide(by=bob, verdict="approve", password="bob")
    ada.password = PBKDF2PasswordHasher().encode(
        "ada", "salt", iterations=1000
    )  # the server knows no quick ones
    ada.save()
    page = open_as(ada, path(approval), width=320)
    page.get_by_label("Your password, to sign").first.fill("ada")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Your vote counts")).to_be_visible()
    assert Approval.objects.get(pk=approval.pk).stage == 2
    assert answer_of(approval) is None


def test_a_comment_with_a_file_is_sent_shown_and_loaded_and_marks_who_is_named(open_as, ada, bob, tmp_path):
    letter = tmp_path / "offer <1>.txt"
    letter.write_text("Corvid is 38 % cheaper.\n")
    page = open_as(ada, path(ask()), width=360)
    page.keyboard.press("c")
    expect(page.get_by_role("textbox", name="Comment")).to_be_focused()
    page.keyboard.type("@bob and @nobody: see <b>this</b>.")
    page.get_by_text("Tell somebody, attach files").click()
    page.get_by_label("Files").set_input_files(letter)
    page.get_by_role("button", name="Comment").click()
    shown = page.locator(".activity")
    expect(shown.locator(".mention")).to_have_text(["@bob"])
    expect(shown).to_contain_text("@nobody: see <b>this</b>.")
    with page.expect_download() as begun:
        shown.get_by_role("link", name="offer _1_.txt").click()
    assert begun.value.suggested_filename == "offer _1_.txt"
    assert Path(begun.value.path()).read_bytes() == letter.read_bytes()
    theirs = open_as(bob, page.url.removeprefix(page.url.partition("/approvals")[0]))
    expect(theirs.locator(".mention-you")).to_have_text(["@bob"])


def test_quiet_hours_are_kept_and_what_is_wrong_stands_at_its_field(open_as, ada):
    page = open_as(ada, "/notices/", width=360)
    page.get_by_label("From", exact=True).fill("22:00")
    page.get_by_label("Until").fill("07:30")
    zone = page.get_by_label("Time zone")
    zone.fill("Europe/Nowhere")
    page.get_by_role("button", name="Keep").click()
    expect(zone).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("From", exact=True)).to_have_value("22:00")
    zone.fill("Europe/Berlin")
    page.get_by_label("A deadline is near").uncheck()
    page.get_by_role("button", name="Keep").click()
    expect(page.locator(".toast")).to_be_visible()
    kept = NoticeWish.objects.get(person=ada)
    assert (kept.quiet_from, kept.quiet_until, kept.zone) == (time(22), time(7, 30), "Europe/Berlin")
    page.reload()
    expect(page.get_by_label("A deadline is near")).not_to_be_checked()
    expect(page.get_by_label("Until")).to_have_value("07:30")
