"""Accounts with a password: signing in, codes, spare codes, a forgotten password, and how often one may try."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client

from approvals.models import Decision
from durableweb import shared_cache
from tests.approvals.cases import ask

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


def sign_in(client: Client, name: str, password: str = "", **more: str):
    return client.post("/login/", {"username": name, "password": password or name, **more})


def code_of(secret: str) -> str:
    return totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time())))


@pytest.fixture
def counted(settings):
    """Tries are counted, as in production."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "tries"}
    }
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def with_app(client, ada) -> str:
    """ada has an app for codes; its secret."""
    sign_in(client, "ada")
    client.post("/account/confirm/", {"password": "ada", "next": "/account/code/"})
    secret = re.search(r'own-key">(\w+)<', client.get("/account/code/").content.decode())[1]
    answer = client.post("/account/code/", {"code": code_of(secret)})
    assert answer["Location"] == "/account/spare-codes/"
    return secret


# -- a password ----------------------------------------------------------------------------------------------


def test_a_wrong_password_and_an_unknown_name_are_answered_alike(client, ada):
    said = [
        re.sub(r'(nonce|value|content|data-now)="[^"]*"', "", sign_in(client, name, "wrong").content.decode())
        for name in ("ada", "nobody")
    ]
    assert said[0] == said[1] and "do not go together" in said[0]
    assert "_auth_user_id" not in client.session


def test_nobody_can_make_an_account(client):
    for path in ("/signup/", "/accounts/signup/", "/login/signup/", "/account/signup/"):
        assert client.post(path, {"username": "x", "password1": "long enough 77"}).status_code in (302, 404)
    assert not User.objects.exists()


def test_an_account_that_is_switched_off_opens_nothing(client, ada):
    ada.is_active = False
    ada.save()
    sign_in(client, "ada")
    assert "_auth_user_id" not in client.session


def test_a_session_ends_after_the_hours_of_the_setting(client, ada, settings):
    sign_in(client, "ada")
    assert settings.SESSION_COOKIE_AGE == 12 * 3600
    assert 12 * 3600 - 60 < client.session.get_expiry_age() <= 12 * 3600


def test_after_five_wrong_passwords_a_name_waits(client, ada, bob, counted):
    for _ in range(5):
        assert sign_in(client, "ada", "wrong").status_code == 200
    assert "Too many wrong passwords" in sign_in(client, "ada").content.decode()
    assert "_auth_user_id" not in client.session
    assert sign_in(Client(), "bob").status_code == 302, "another name is not kept out"


def test_from_one_address_only_so_many_names_can_be_tried(client, ada, counted):
    answers = [sign_in(client, f"name{number}", "wrong") for number in range(31)]
    assert answers[-1].status_code == 429
    assert "Wait a few minutes" in answers[-1].content.decode()
    assert sign_in(client, "ada").status_code == 429


ANOTHER_PROCESS = """
import django
django.setup()
from django.conf import settings
from django.test import Client, override_settings
from durableweb import shared_cache
with override_settings(CACHES=settings.CACHES | {"default": shared_cache.described("")}):
    for _ in range(3):
        answer = Client().post("/login/", {"username": "ada", "password": "wrong"})
        print("Too many wrong passwords" in answer.content.decode())
"""


@pytest.mark.django_db(transaction=True)
def test_wrong_passwords_are_counted_over_all_web_processes(client, ada, settings):
    """Without Redis, too: in a table that migrate makes and both processes have."""
    settings.CACHES = settings.CACHES | {"default": shared_cache.described("")}
    shared_cache.make_table()
    shared_cache.make_table()  # as the next migrate does
    try:
        for _ in range(3):
            assert "Too many" not in sign_in(client, "ada", "wrong").content.decode()
        there = subprocess.run(
            [sys.executable, "-c", ANOTHER_PROCESS], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        assert there.stdout.split() == ["False", "False", "True"]
        assert "Too many wrong passwords" in sign_in(client, "ada").content.decode()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {shared_cache.TABLE}")


def test_a_changed_password_needs_the_old_one(client, ada):
    sign_in(client, "ada")
    new = {"password1": "correct horse 7", "password2": "correct horse 7"}
    assert client.post("/account/password/", {"oldpassword": "guess", **new}).status_code == 200
    assert client.post("/account/password/", {"oldpassword": "ada", **new}).status_code == 302
    assert User.objects.get(username="ada").check_password("correct horse 7")


def test_a_forgotten_password_is_chosen_anew_by_a_link_that_works_once(client, ada, mailoutbox):
    sent = client.post("/login/forgotten/", {"email": "ada@example.com"})
    assert sent["Location"] == "/login/forgotten/sent/"
    (mail,) = mailoutbox
    assert mail.to == ["ada@example.com"] and "for ada" in mail.body
    link = re.search(r"http://testserver(/login/new-password/\S+)", mail.body)[1]
    for _ in range(3):  # a scanner follows it first
        Client().get(link)
        Client().head(link)
    form = client.get(link, follow=True)
    place = form.redirect_chain[-1][0]
    done = client.post(place, {"password1": "correct horse 7", "password2": "correct horse 7"})
    assert done["Location"] == "/login/new-password/"
    assert User.objects.get(username="ada").check_password("correct horse 7")
    assert "used already" in Client().get(link, follow=True).content.decode()


def test_an_address_that_nobody_has_is_told_nothing_and_gets_no_mail(client, mailoutbox):
    assert (
        client.post("/login/forgotten/", {"email": "x@example.com"})["Location"] == "/login/forgotten/sent/"
    )
    assert mailoutbox == []


# -- codes ---------------------------------------------------------------------------------------------------


def test_a_code_is_set_up_only_after_the_password_again(client, ada):
    sign_in(client, "ada")
    for path in ("/account/code/", "/account/passkeys/new/"):
        assert client.get(path)["Location"].startswith("/account/confirm/?next=")


def test_the_password_alone_no_longer_signs_in(with_app, ada):
    client = Client()
    assert sign_in(client, "ada", next="/runs/")["Location"] == "/login/code/"
    assert "_auth_user_id" not in client.session
    assert client.get("/").status_code == 302
    assert client.post("/login/code/", {"code": "000000"}).status_code == 200
    assert client.post("/login/code/", {"code": code_of(with_app)})["Location"] == "/runs/"
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_a_code_opens_once(with_app, ada, counted):
    code = code_of(with_app)
    first, second = Client(), Client()
    for client in (first, second):
        sign_in(client, "ada")
        client.post("/login/code/", {"code": code})
    assert ("_auth_user_id" in first.session, "_auth_user_id" in second.session) == (True, False)


def test_a_spare_code_opens_once(with_app, client):
    page = client.get("/account/spare-codes/").content.decode()
    spare = re.search(r"<li><code>(\w+)</code>", page)[1]
    first, second = Client(), Client()
    for one in (first, second):
        sign_in(one, "ada")
        one.post("/login/code/", {"code": spare})
    assert ("_auth_user_id" in first.session, "_auth_user_id" in second.session) == (True, False)


def test_the_second_step_can_be_left(with_app):
    client = Client()
    sign_in(client, "ada")
    assert client.get("/login/")["Location"] == "/login/code/"
    client.post("/login/not-now/")
    assert client.get("/login/").status_code == 200


def test_secrets_of_codes_are_not_in_the_database_as_they_are(with_app):
    """O4."""
    stored = str([row.data for row in Authenticator.objects.all()])
    assert with_app not in stored


def test_a_code_under_another_key_of_the_site_is_refused_in_words(with_app, settings):
    settings.SECRET_KEY = "another " * 8
    client = Client()
    sign_in(client, "ada")
    page = client.post("/login/code/", {"code": code_of(with_app)}).content.decode()
    assert "under another key of this site" in page


def test_a_code_signs_one_decision(with_app, client):
    first, second = ask(sign=True), ask(sign=True)
    page = client.get(f"/approvals/{first.pk}/").content.decode()
    assert "/account/confirm/code/?next=" in page and 'name="password"' in page
    spare = re.search(r"<li><code>(\w+)</code>", client.get("/account/spare-codes/").content.decode())[1]
    assert client.post("/account/confirm/code/", {"code": spare}).status_code == 302
    said = {"verdict": "approve", "revision": "1", "operation_id": "op"}
    assert client.post(f"/approvals/{first.pk}/decision/", said).status_code == 302
    assert '"how":"spare code"' in Decision.objects.get().signature
    assert client.post(f"/approvals/{second.pk}/decision/", said | {"operation_id": "op2"}).status_code == 422


def test_the_password_again_elsewhere_is_no_signature(client, ada):
    """It is given with the decision: what it was given for before was something else."""
    sign_in(client, "ada")
    client.post("/account/confirm/", {"password": "ada"})
    said = {"verdict": "approve", "revision": "1"}
    assert client.post(f"/approvals/{ask(sign=True).pk}/decision/", said).status_code == 422


# -- what browsers keep --------------------------------------------------------------------------------------


def test_no_page_of_the_signed_in_is_kept(client, ada):
    approval = ask()
    client.force_login(ada)
    for path in (
        "/",
        "/runs/",
        f"/approvals/{approval.pk}/",
        "/account/",
        "/away/",
        "/nowhere/",
        "/inbox/list/",
    ):
        assert "no-store" in client.get(path)["Cache-Control"], path
    assert "no-store" in Client().get("/login/")["Cache-Control"]
