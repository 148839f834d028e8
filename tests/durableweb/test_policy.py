"""What a browser is told about scripts and frames, and who is let in."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.django_db


def directives(response):
    pairs = (part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    return {name: set(rest[0].split()) for name, *rest in pairs}


@pytest.mark.smoke
def test_a_page_may_load_only_its_own_files(client):
    found = directives(client.get("/login/"))
    for source in found["script-src"] | found["style-src"]:
        assert source == "'self'" or re.fullmatch(r"'nonce-[\w+/=]{24}'", source)
    assert found["default-src"] == found["connect-src"] == found["form-action"] == {"'self'"}
    assert found["frame-ancestors"] == found["base-uri"] == found["object-src"] == {"'none'"}
    assert found["img-src"] == {"'self'", "data:"}


def test_the_admin_site_has_its_own_policy_for_staff(client, olga):
    client.force_login(olga)
    inside = client.get("/admin/")
    assert inside.status_code == 200
    found = directives(inside)
    assert found["script-src"] == {"'self'", "'unsafe-eval'"}
    assert found["style-src"] == {"'self'", "'unsafe-inline'"}
    assert found["frame-ancestors"] == {"'none'"}
    assert "'unsafe-eval'" not in directives(client.get("/login/"))["script-src"]


def test_others_meet_the_strict_policy_there_too(client, eve):
    assert "unsafe" not in client.get("/admin/")["Content-Security-Policy"]
    client.force_login(eve)
    assert "unsafe" not in client.get("/admin/")["Content-Security-Policy"]


def test_strangers_are_led_to_the_one_sign_in_page(client):
    for address in ("/", "/admin/"):
        response = client.get(address, follow=True)
        assert response.request["PATH_INFO"] == "/login/", address
    response = client.get("/admin/login/?next=/admin/")
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/admin/")


def test_pages_may_not_be_framed_or_leak_their_address(client):
    response = client.get("/login/")
    assert response["X-Frame-Options"] == "DENY"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["X-Content-Type-Options"] == "nosniff"
