"""Every page in another language: the catalogs are complete, and nothing that a page says is left out of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import translation
from django.utils.translation import trans_real

from durableweb import catalogs
from runs.pages import words
from tests.approvals.cases import ask, close, waiting_run

GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de"}
# Greek is what people and authors wrote; Latin letters outside the marks were written by us.
QUESTION, WHY, REASON = "Να σταλεί;", "Το **ζήτησαν**.", "Όχι ακόμη."
PAYLOAD = {
    "προς": ["μία", "δύο"],
    "θέμα": "Σύνοψη",
    "σώμα": "Αγαπητή,\n\nιδού.",
    "πλήθος": 7,
    "τιμή": 1.5,
    "ναι": True,
    "τίποτε": None,
    "βάθος": {"α": [1, {"β": 2}]},
}
SCHEMA = {
    "type": "object",
    "required": ["θέμα"],
    "properties": {
        "θέμα": {"type": "string", "maxLength": 9},
        "επιλογή": {"enum": ["α", "β", "γ"]},
        "μέρα": {"type": "string", "format": "date"},
        "ώρα": {"type": "string", "format": "date-time"},
        "πλήθος": {"type": "integer", "maximum": 5},
    },
}
# Names of the product, of formats and of the rows that these pages show; units that are symbols.
NAMES = (
    "durableweb JSON UTC QR Deutsch English ada bob eve olga iris pm ops legal team root mailing email question "
    "localhost admin KB MB DURABLEWEB_SITE_URL https example com helen Ada Lovelace Bob Greek docs sso "
    "Bearer run start graph payload approve".split()
)
SILENT = {
    "script",
    "style",
    "code",
    "pre",
    "textarea",
    "kbd",
    "time",
    "blockquote",
}  # a blockquote: reasons, and what the trail keeps
SAID_BY = (
    "aria-label",
    "placeholder",
    "title",
    "alt",
    "data-live-says",
    "data-copied",
    "data-edited",
    "data-plain",
)


@pytest.mark.parametrize("language", [code for code, _name in settings.LANGUAGES if code != "en"])
def test_a_catalog_has_every_text_with_its_places_and_is_compiled(language):
    assert catalogs.faults(language) == []


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    """A request leaves its language behind in the thread, as in every Django; the next one sets its own."""
    yield
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture
def marked(monkeypatch):
    """German in which each translated text stands in marks, and nothing is said otherwise."""
    german = copy.copy(trans_real.translation("de"))

    def mark(text: str) -> str:
        return f"⟦{text.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}⟧"

    german.gettext = mark
    german.ngettext = lambda one, many, number: mark(one if number == 1 else many)
    monkeypatch.setitem(trans_real._translations, "de", german)


class Texts(HTMLParser):
    """What a page says, by text and by attributes that are read out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.said: list[str] = []
        self.attributes: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        silent = tag in SILENT or {"mono", "avatar"} & set((given.get("class") or "").split())
        if tag not in ("meta", "link", "input", "br", "img", "path", "rect", "hr", "circle", "line", "use"):
            self.open.append("silent" if silent else tag)
        self.attributes += [given[name] for name in SAID_BY if given.get(name)]

    def handle_endtag(self, tag):
        if self.open:
            self.open.pop()

    def handle_data(self, text):
        if "silent" not in self.open and text.strip():
            self.said.append(" ".join(text.split()))


def unmarked(page: str) -> list[str]:
    """The texts of a page that hold words of ours outside the marks."""
    texts = Texts(page)
    left, before = "\n".join([*texts.attributes, *texts.said]), None
    while left != before:
        left, before = re.sub(r"⟦[^⟦⟧]*⟧", " ", left), left
    left = re.sub(r"[\w.+-]+@[\w.-]+|[0-9a-f]{6,}|[\w#]*\d[\w:#.-]*", " ", left)
    return [
        line.strip()
        for line in left.split("\n")
        if [word for word in re.findall(r"[A-Za-z][A-Za-z_]+", line) if word not in NAMES]
    ]


@pytest.mark.django_db(transaction=True)
def test_nothing_that_a_page_says_is_left_in_english(marked, client, ada, bob, olga, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "site_url": "https://example.com"}
    for someone in (ada, bob, olga):
        someone.email = f"{someone.username}@example.com"
        someone.save()
    given = {"question": QUESTION, "why": WHY, "schema": SCHEMA}
    open_one = ask(PAYLOAD, due=timedelta(hours=4), risk="high", reasons=[REASON], quorum=2, **given)
    call = {"tool": "post_letter", "kind": "write", "key": "k", "description": "Το γράμμα φεύγει."}
    called = ask(PAYLOAD, call=call, run=waiting_run(on_behalf_of=olga), risk="medium", **given)
    in_words = ask(None, verdicts=["respond", "reject"], question=QUESTION, why="")
    signed = ask(PAYLOAD, sign=True, question=QUESTION, why="")
    own = ask(PAYLOAD, run=waiting_run(created_by=ada), question=QUESTION, why=WHY)
    stages = [{"name": "α", "reviewers": ["pm"], "quorum": 1, "when": None, "needed": True}]
    stages.append({"name": "β", "reviewers": ["bob"], "quorum": 1, "when": None, "needed": True})
    staged = ask(PAYLOAD, stages=stages, question=QUESTION, why=WHY)
    decided = [ask(PAYLOAD, question=QUESTION, why=WHY) for _each in range(5)]
    decided[0].decide(by=bob, verdict="approve")
    decided[1].decide(by=bob, verdict="edit", payload={**PAYLOAD, "πλήθος": 3})
    decided[2].decide(by=bob, verdict="reject", reason=REASON)
    close(decided[3], "expired")
    close(decided[4], "cancelled")
    own_word = ask(PAYLOAD, question=QUESTION, why=WHY)
    own_word.decide(by=ada, verdict="approve")
    open_one.decide(by=bob, verdict="approve")
    open_one.comment(by=bob, text=REASON)
    called.claim(by=bob)
    client.force_login(ada)
    approvals = [open_one, called, in_words, signed, own, staged, *decided, own_word]
    pick = f"pick={called.pk.hex}.{called.revision}&pick={signed.pk.hex}.{signed.revision}"
    pages = [
        "/",
        "/?scope=decided",
        "/?scope=attention",
        "/?scope=all&risk=high&due=7d&age=3d&requester=x&q=x",
        f"/?decided={decided[0].pk}",
        f"/inbox/bulk/?{pick}",
        "/away/",
        "/notices/",
        "/runs/",
        "/runs/?status=failed&q=x",
        "/account/",
        "/account/password/",
        "/account/confirm/",
        "/account/passkeys/",
        "/nowhere/",
        *(each.get_absolute_url() for each in approvals),
        *(f"/runs/{each.run_id}/" for each in (open_one, decided[0])),
    ]
    left = {}
    for path in pages:
        answer = client.get(path, **GERMAN)
        assert answer.status_code in (200, 404), path
        assert answer.content.decode().count("⟦") > 5, path
        if found := unmarked(answer.content.decode()):
            left[path] = found
    posts = {
        f"/approvals/{called.pk}/decision/": {"verdict": "reject", "revision": called.revision},
        f"/approvals/{own.pk}/decision/": {"verdict": "approve", "revision": own.revision},
        f"/approvals/{decided[2].pk}/decision/": {"verdict": "approve", "revision": 1},
        f"/approvals/{signed.pk}/decision/": {"verdict": "approve", "revision": signed.revision},
        f"/approvals/{open_one.pk}/decision/": {"verdict": "approve", "revision": open_one.revision - 1},
        f"/approvals/{in_words.pk}/comments/": {"text": ""},
        f"/approvals/{called.pk}/assignment/": {"to": "nobody", "revision": called.revision},
        f"/runs/{called.run_id}/cancellation/": {"reason": "x"},
        "/away/": {"to": "", "since": "x", "until": "y"},
    }
    for path, post in posts.items():
        answer = client.post(path, post, follow=True, **GERMAN)
        if found := unmarked(answer.content.decode()):
            left[path] = found
    client.logout()
    for path in ("/login/", "/login/forgotten/", "/login/failed/", "/login/cancelled/"):
        if found := unmarked(client.get(path, **GERMAN).content.decode()):
            left[path] = found
    assert {text for found in left.values() for text in found} == set(), left


def test_the_pages_for_what_broke_are_translated(marked, rf: RequestFactory):
    with translation.override("de"):
        for name in ("400.html", "403_csrf.html", "429.html", "500.html"):
            request = rf.get("/")
            request.user = SimpleNamespace(is_authenticated=False)
            assert unmarked(render_to_string(name, {"user": request.user}, request)) == [], name


@pytest.mark.django_db
def test_a_person_chooses_a_language_and_it_stays(client, ada):
    client.force_login(ada)
    said = client.get("/", **GERMAN)
    assert said["Content-Language"] == "de" and "Posteingang" in said.content.decode()
    assert '<html lang="de"' in said.content.decode()
    assert "Accept-Language" in said["Vary"]
    client.post("/runs/preferences/", {"theme": "dark", "keys": "on", "language": "en", "back": "/"})
    assert "Inbox" in client.get("/", **GERMAN).content.decode()
    client.post("/runs/preferences/", {"theme": "dark", "keys": "on", "language": "de"})
    assert "Posteingang" in client.get("/").content.decode()
    assert (
        "Posteingang" in client.get("/inbox/list/").content.decode()
        or client.get("/inbox/list/").status_code == 200
    )
    client.post("/runs/preferences/", {"theme": "dark", "keys": "on", "language": "xx"})
    assert "Inbox" in client.get("/").content.decode()
    assert "Posteingang" in client.get("/", **GERMAN).content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_refusal_is_told_in_the_readers_language_and_kept_in_english(client, ada, bob):
    approval = ask(PAYLOAD, question=QUESTION)
    approval.decide(by=bob, verdict="reject", reason=REASON)
    client.force_login(ada)
    answer = client.post(
        f"/approvals/{approval.pk}/decision/", {"verdict": "approve", "revision": 1}, **GERMAN
    )
    assert answer.status_code == 409
    assert "bob: abgelehnt um" in answer.content.decode()
    kept = approval.activities.order_by("seq").last()
    assert kept.text.startswith("approve: bob rejected this at ")


def test_numbers_and_days_are_of_the_language():
    with translation.override("de"):
        assert words.span(8.2) == "8,2\u00a0s"
        assert words.since(timedelta(hours=4)) == "vor 4\u00a0h"
    assert words.span(8.2) == "8.2\u00a0s"
