"""What browsers are told, what they would execute, and what an error gives away."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from approvals.markdown import rendered
from approvals.models import Approval
from approvals.views import inbox
from runs.models import BlobUse, Run
from tests.approvals.browser_post import posted_by
from tests.approvals.pages import as_person
from tests.conftest import ROOT
from tests.security.letters import waiting_letter
from tests.security.test_routes import FORM, OPEN, READ, RULES, TOKEN, address, unmoved

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("letters_known")]

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><b style='color:red' onclick=x()>b</b>\n\n"
    "[a](javascript:alert(1)) [b](data:text/html;base64,PHNjcmlwdD4=) [c](vbscript:x) ![d](http://e.example/d.png)\n\n"
    '[e](https://e.example/"onmouseover="alert(1)) <https://e.example/?<script>> [f]: javascript:alert(2)\n\n'
    "<svg/onload=alert(1)> <iframe src=//e.example></iframe> &lt;script&gt; <a href='JaVaScRiPt:x'>g</a>\n\n[h][f]"
)


@pytest.fixture
def run(transactional_db: None) -> Run:
    return waiting_letter(why=EVIL, evil={EVIL: EVIL})


class Active(HTMLParser):
    """What a browser would run or load from a page, against what its policy allows."""

    def __init__(self, nonce: str) -> None:
        super().__init__(convert_charrefs=True)
        self.nonce = nonce
        self.wrong: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        given = {name: value or "" for name, value in attrs}
        for name, value in given.items():
            plain = re.sub(r"[\s\x00-\x20]", "", value).lower()
            if name == "style" or name.startswith(("on", "hx-on")) or name == "srcdoc":
                self.wrong.append(f"<{tag} {name}={value!r}>")
            if name in ("href", "src", "action", "formaction", "xlink:href", "data", "poster"):
                if plain.startswith(("javascript:", "vbscript:", "data:", "//")):
                    self.wrong.append(f"<{tag} {name}={value!r}>")
            if name.startswith("hx-") and ("js:" in plain or "[" in plain and name == "hx-trigger"):
                self.wrong.append(f"<{tag} {name}={value!r}>")
        if tag == "script" and given.get("type") != "application/json":
            if not given.get("src", "").startswith("/static/") or given.get("nonce") != self.nonce:
                self.wrong.append(f"<script {given}>")
        if tag in ("style", "iframe", "object", "embed", "base", "img"):
            self.wrong.append(f"<{tag} {given}>")

    handle_startendtag = handle_starttag


def checked(answer: Any) -> Active:
    """A page with a policy of its own, and nothing on it that the policy would have to stop."""
    policy = answer["Content-Security-Policy"]
    nonce = re.search(r"script-src [^;]*'nonce-([^']+)'", policy)
    assert "unsafe" not in policy and "*" not in policy
    assert "default-src 'self'" in policy and "object-src 'none'" in policy and "base-uri 'none'" in policy
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    reader = Active(nonce[1] if nonce else "")
    reader.feed(answer.content.decode())
    reader.close()
    assert reader.wrong == []
    return reader


def test_no_page_holds_anything_that_acts_by_itself(run: Run, ada: Any, olga: Any) -> None:
    """Also of what authors and reviewers wrote; each page has a new nonce."""
    client, approval = as_person(ada), Approval.objects.get(run=run)
    client.post(f"/approvals/{approval.pk}/comments/", {"text": EVIL})
    paths = ["/", "/?scope=all", "/runs/", "/runs/rows/", f"/runs/{run.pk}/", f"/runs/{run.pk}/live/"]
    paths += [
        f"/runs/{run.pk}/?at=1&against=0",
        f"/approvals/{approval.pk}/",
        "/inbox/list/",
        "/inbox/count/",
    ]
    paths += [f"/approvals/{approval.pk}/parts/{part}/" for part in ("state", "people", "acts", "notice")]
    nonces = []
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        if "script" in checked(answer).seen:
            nonces.append(re.search(r"'nonce-([^']+)'", answer["Content-Security-Policy"])[1])
    assert len(set(nonces)) == len(nonces) > 5
    html = client.get(f"/approvals/{approval.pk}/").content.decode()
    refused = posted_by(html)
    refused["verdict"], refused["view"], refused["json"] = "approve", "json", EVIL
    answer = client.post(f"/approvals/{approval.pk}/decision/", refused.urlencode(), content_type=FORM)
    assert answer.status_code == 422
    checked(answer)
    rejected = posted_by(html, form_id="reject")
    rejected["verdict"], rejected["reason"] = "reject", EVIL
    client.post(f"/approvals/{approval.pk}/decision/", rejected.urlencode(), content_type=FORM)
    for path in (f"/approvals/{approval.pk}/", f"/?scope=decided&decided={approval.pk}", f"/runs/{run.pk}/"):
        checked(client.get(path))
    for answer in (
        client.get("/nowhere/"),
        Client().get("/login/"),
        Client().post("/login/", {"username": EVIL}),
    ):
        checked(answer)
    checked(client.post(f"/runs/{run.pk}/cancellation/", {"reason": EVIL}))
    assert as_person(olga).post(f"/runs/{run.pk}/cancellation/", {"reason": EVIL}).status_code == 302
    checked(client.get(f"/runs/{run.pk}/"))


def test_markdown_becomes_text_links_and_nothing_else() -> None:
    reader = Active("")
    reader.feed(rendered(EVIL))
    assert reader.wrong == []
    assert reader.seen <= {"p", "a", "br", "em", "strong", "code"}
    assert 'href="https://e.example/' in rendered("[e](https://e.example/)")
    assert "nofollow" in rendered("[e](https://e.example/)")


@pytest.mark.parametrize(
    "path", [r"https://evil.example/", "//evil.example/", r"/\evil.example", "javascript:alert(1)", "http:///evil.example",
             "https:evil.example", "/\t/evil.example", " //evil.example", "\x00//evil.example"]
)  # fmt: skip
def test_signing_in_leads_nowhere_else(ada: Any, path: str) -> None:
    client = Client()
    for answer in (
        client.post("/login/", {"username": "ada", "password": "ada", "next": path}),
        client.post("/logout/", {"next": path}),
        as_person(ada).post("/runs/preferences/", {"back": path}),
    ):
        assert answer.status_code == 302
        assert answer["Location"] in ("/", "/login/"), answer["Location"]


def test_signing_in_leads_to_the_page_that_was_wanted(run: Run, ada: Any) -> None:
    wanted = f"/approvals/{Approval.objects.get(run=run).pk}/?scope=all"
    sent = Client().get(wanted)
    client = Client()
    form = client.get(sent["Location"]).content.decode()
    found = re.search(r'name="next" value="([^"]*)"', form)[1].replace("&amp;", "&")
    answer = client.post("/login/", {"username": "ada", "password": "ada", "next": found})
    assert answer["Location"] == wanted


def test_a_form_of_another_site_changes_nothing_on_any_route(run: Run, ada: Any) -> None:
    """No token, or another one's: 403 in words, on each route that takes a POST."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    forms = [route for route, rule in RULES.items() if route not in READ and rule != TOKEN]
    for route in forms:
        path = address(route, run)
        for token in ("", "x" * 64):
            said = f"verdict=approve&revision=1&reason=x&text=x&csrfmiddlewaretoken={token}"
            answer = client.post(path, said, content_type=FORM)
            assert answer.status_code == 403, route
            assert (
                "Nothing was changed" in answer.content.decode()
                or "nothing was changed" in answer.content.decode()
            )
            checked(answer)
    assert RULES["login/"] == OPEN
    assert unmoved(run)


def test_with_the_page_s_own_token_it_works(run: Run, ada: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    approval = Approval.objects.get(run=run)
    entries = posted_by(client.get(f"/approvals/{approval.pk}/").content.decode())
    entries["verdict"] = "approve"
    address = f"/approvals/{approval.pk}/decision/"
    assert client.post(address, entries.urlencode(), content_type=FORM).status_code == 302
    elsewhere = client.post(
        address,
        entries.urlencode(),
        content_type=FORM,
        secure=True,
        headers={"origin": "https://evil.example"},
    )
    assert elsewhere.status_code == 403


def test_stored_bytes_are_never_a_page(transactional_db: None, ada: Any) -> None:
    """Whatever a tool said that they are; what is not text is only for saving."""
    client = as_person(ada)
    for media_type in ("text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript", "application/pdf",
                       "text/plain; charset=utf-7", "application/json", "", "a/b\r\nSet-Cookie: x=y"):  # fmt: skip
        run = waiting_letter(media_type=media_type)
        answer = client.get(address("runs/<uuid:run_id>/blobs/<slug:sha256>/", run))
        kind = answer["Content-Type"]
        assert kind in ("text/plain; charset=utf-8", "application/octet-stream"), media_type
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
        place = answer["Content-Disposition"].partition(";")[0]
        assert place == "attachment" or (place == "inline" and kind.startswith("text/plain"))
        assert "x" not in answer.cookies
        BlobUse.objects.all().delete()


def test_errors_give_nothing_away(run: Run, ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.DEBUG is False
    client = as_person(ada)
    client.raise_request_exception = False

    def broken(*_given: Any) -> None:
        password = "hunter22"  # noqa: F841, S105
        raise RuntimeError("postgres://durableweb:hunter22@db/ is gone")

    monkeypatch.setattr(inbox.Listing, "of", broken)
    for path, code in (("/", 500), ("/nowhere/<b>/", 404), (f"/runs/{run.pk}/?at=99", 404)):
        answer = client.get(path)
        text = answer.content.decode()
        assert answer.status_code == code
        for word in (
            "hunter22",
            "Traceback",
            "RuntimeError",
            "urlpatterns",
            "DURABLEWEB_",
            "Django",
            "<b>",
            str(ROOT),
        ):
            assert word not in text, (path, word)
        checked(answer)


def test_a_request_to_another_name_is_refused() -> None:
    answer = Client().get("/", headers={"host": "evil.example"})
    assert answer.status_code == 400
    assert "Nothing was changed" in answer.content.decode()
    assert "evil.example" not in answer.content.decode()


def test_in_production_cookies_are_for_this_site_over_https_only(tmp_path: Any) -> None:
    names = (
        "SESSION_COOKIE_SECURE SESSION_COOKIE_HTTPONLY SESSION_COOKIE_SAMESITE CSRF_COOKIE_SECURE CSRF_COOKIE_SAMESITE "
        "SECURE_SSL_REDIRECT SECURE_HSTS_SECONDS DEBUG X_FRAME_OPTIONS SECURE_CONTENT_TYPE_NOSNIFF"
    ).split()
    program = f"from django.conf import settings; print([getattr(settings, name) for name in {names}])"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DURABLEWEB_", "DATABASE_"))
    }
    environment |= {
        "DJANGO_SETTINGS_MODULE": "durableweb.settings",
        "DURABLEWEB_HOME": str(tmp_path),
        "DURABLEWEB_SECRET_KEY": "x" * 60,
        "DURABLEWEB_ALLOWED_HOSTS": "durableweb.example",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[True, True, 'Lax', True, 'Lax', True, 31536000, False, 'DENY', True]"
