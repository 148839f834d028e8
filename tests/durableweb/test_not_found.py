"""An address that is nothing shows our own page, in the demo as in production."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("debug", [True, False])
def test_what_is_not_there_is_answered_by_our_own_page(settings, eve, debug):
    """No route, a route without its row, and a visitor; an address without its last slash is still led on."""
    settings.DEBUG = debug
    inside, visitor = Client(), Client()
    inside.force_login(eve)
    row = "/runs/01a22c18-c765-790f-ae39-81dc8ad20225/"
    for client, address in (
        (inside, "/no/such/page/"),
        (inside, "/nothing.txt"),
        (inside, row),
        (visitor, "/no/such/page/"),
    ):
        answer = client.get(address)
        text = answer.content.decode()
        assert answer.status_code == 404, address
        assert "There is nothing here for you" in text and f"<code>{address}</code>" in text, address
        assert "URLconf" not in text and "admin/login" not in text, address
    assert inside.get("/runs").status_code == 301


def test_a_fault_of_ours_keeps_its_technical_page_in_the_demo(settings, eve):
    settings.DEBUG = True
    settings.ROOT_URLCONF = "tests.gallery.urls"
    client = Client(raise_request_exception=False)
    client.force_login(eve)
    answer = client.get("/failing/500/")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.content.decode() and "Traceback" in answer.content.decode()
