"""Stages, hand over, deadline and signature in a real browser."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import expect

from approvals.models import Approval
from tests.approvals.cases import answer_of, ask, told
from tests.approvals.test_stages import stage
from tests.browser.test_approval_page import _violations, path

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


def test_stages_forms_and_signature_are_accessible_and_fit_a_narrow_page(open_as, ada, bob):
    approval = staged(sign=True)
    approval.decide(by=bob, verdict="approve", password="bob")
    ada.password = PBKDF2PasswordHasher().encode(
        "ada", "salt", iterations=1000
    )  # the server knows no quick ones
    ada.save()
    page = open_as(ada, path(approval), width=320, bypass_csp=True)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for opens in (None, "Hand over…", "Move the deadline…", "Reject…"):
            if opens:
                page.get_by_role("button", name=opens).click()
            assert _violations(page) == [], (theme, opens)
            page.keyboard.press("Escape")
    page.get_by_label("Your password, to sign").first.fill("ada")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Your vote counts")).to_be_visible()
    assert Approval.objects.get(pk=approval.pk).stage == 2
    assert answer_of(approval) is None
