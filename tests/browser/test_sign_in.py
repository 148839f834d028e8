"""Passkeys in a real browser with a virtual authenticator."""

from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import expect

from approvals.models import Approval, Decision
from tests.approvals.cases import ask

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def site(address):
    """Passkeys belong to a name, which an address of numbers is not."""
    return address.replace("127.0.0.1", "localhost")


def hashed(password):
    """As the server's process reads and leaves it: one that it wrote anew would end the session."""
    hasher = PBKDF2PasswordHasher()
    return hasher.encode(password, hasher.salt())


def with_authenticator(page):
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
    }
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_a_passkey_is_added_signs_in_alone_and_signs_a_decision(open_as, site, ada):
    ada.password = hashed("ada")
    ada.save()
    page = open_as(ada, "/login/", width=360)
    page.context.clear_cookies()
    with_authenticator(page)
    page.goto(f"{site}/login/?next=/account/passkeys/new/")
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill("ada")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Is it you?")).to_be_visible()
    page.get_by_label("Password").fill("ada")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("heading", name="Add a passkey")).to_be_visible()
    page.get_by_label("What you call it").fill("office laptop")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("heading", name="Spare codes")).to_be_visible()
    assert Authenticator.objects.get(type="webauthn").wrap().is_passwordless

    page.context.clear_cookies()
    approval = ask(sign=True)
    page.goto(f"{site}/login/?next=/approvals/{approval.pk}/")
    page.get_by_role("button", name="Use a passkey instead").click()
    way = page.get_by_role("link", name="With a passkey").first
    expect(way).to_be_visible()
    way.click()
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.get_by_text("You have just shown that it is you (passkey).").first).to_be_visible()
    page.get_by_role("button", name="Approve").first.click()
    expect(page.get_by_text("Approved").first).to_be_visible()
    decision = Decision.objects.get()
    assert '"how":"passkey"' in decision.signature and decision.signed_in == "passkey"
    assert Approval.objects.get().outcome == "approved"
