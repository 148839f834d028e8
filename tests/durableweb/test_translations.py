"""Every page in another language: the catalogs are complete, and nothing that a page says is left out of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.base import Lexer, TokenType
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import translation

from approvals.models import Notice, NoticeWish
from approvals.notices import words as occasions
from approvals.notices.troubles import troubles
from approvals.notices.wording import wording
from durableweb import catalogs
from runs.admin_words import of_schedules
from runs.pages import words
from runs.pages.recorded import of_runs
from tests.approvals.cases import ask, close, waiting_run
from tests.approvals.langchain_requests import BATCHED, INBOX
from tests.approvals.test_contracts import APPROVED, REFUSED
from tests.durableweb import pseudo_german as pseudo
from tests.durableweb.pseudo_german import GERMAN, pseudo_german
from tests.runs.driving import do_due

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
NAMES = set(
    "durableweb JSON UTC QR Deutsch English ada bob eve olga iris pm ops legal team root mailing email question "
    "localhost admin KB MB DURABLEWEB_SITE_URL https example com helen Ada Lovelace Bob Greek docs sso "
    "Bearer run start graph payload approve post_letter".split()
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
def marked() -> Iterator[None]:
    with pseudo_german() as seen:
        yield
    assert seen.english <= {"English", "Deutsch"}


def unmarked(page: str) -> list[str]:
    return pseudo.unmarked(page, NAMES)


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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", [BATCHED, INBOX], ids=["batched", "inbox"])
def test_the_cards_of_a_contract_are_in_the_readers_language(marked, client, ada, form):
    """Asked, edited wrongly, and answered; what the agent's author wrote stays as it is."""
    approval = ask(form, verdicts=["respond"], question=QUESTION, why=WHY)
    client.force_login(ada)
    shown = [client.get(approval.get_absolute_url(), **GERMAN)]
    empty = {"verdict": "respond", "revision": approval.revision, "operation_id": "x"}
    shown.append(client.post(f"/approvals/{approval.pk}/decision/", empty, follow=True, **GERMAN))
    said = [[APPROVED, REFUSED], [{"type": "accept", "args": None}]][form is INBOX]
    answer = {"decisions": said} if form is BATCHED else said
    approval.decide(by=ada, verdict="respond", payload=answer)
    shown.append(client.get(approval.get_absolute_url(), **GERMAN))
    told_by_author = {
        *(
            "pay",
            "wipe",
            "run_command",
            "To",
            "Amount",
            "Path",
            "Command",
            "Args",
            "Args 1",
            "Args 1 -l",
            "ls",
            "bob",
            "/etc",
        ),
        *("Wipes everything below a path.", "Tool execution requires approval"),
        "Please review the command before execution",
        *("1. pay:", "2. wipe:", "pay, wipe"),  # names of tools
    }
    left = {text for answer in shown for text in unmarked(answer.content.decode())}
    assert left <= told_by_author, left - told_by_author


@pytest.mark.django_db(transaction=True)
def test_files_and_what_is_wrong_with_them_are_in_the_readers_language(
    marked, client, ada, settings, tmp_path
):
    settings.MEDIA_ROOT = tmp_path
    approval = ask(PAYLOAD, question=QUESTION, why=WHY)
    client.force_login(ada)
    at = f"/approvals/{approval.pk}/comments/"
    pages = []
    for name, content in (("α.txt", "Ιδού.".encode()), ("α.exe", b"MZ\0\1"), ("α.txt", b"")):
        sent = {"text": REASON, "files": [SimpleUploadedFile(name, content)]}
        pages.append(client.post(at, sent, follow=True, **GERMAN))
    assert approval.attachments.count() == 1
    left = {text for page in pages for text in unmarked(page.content.decode())}
    assert {text for text in left if not {"txt", "exe"} & set(re.findall(r"\w+", text))} == set()


@pytest.mark.django_db(transaction=True)
def test_no_mail_says_an_english_word_of_ours(marked, bob, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "site_url": "https://example.com"}
    approval = ask(PAYLOAD, due=timedelta(hours=4), risk="high", question=QUESTION, why=WHY)
    with translation.override("de"):
        for occasion in occasions.OCCASIONS:
            said = wording(Notice(approval=approval, occasion=occasion, person=bob))
            for form in ("txt", "html"):
                mail_text = render_to_string(
                    f"approvals/notices/mail.{form}", {"said": said, "title": QUESTION}
                )
                assert unmarked(mail_text) == [], (occasion, form)


def test_no_template_has_a_text_that_is_not_marked():
    """In any branch, also where no page of the gallery comes to: sign-in, second factors, mails, errors."""
    templates = catalogs.ROOT / "templates"
    of_tags = set("aria label invalid true describedby hint error app model".split())
    found = {
        str(path.relative_to(templates)): pseudo.unmarked(_without_tags(path.read_text()), NAMES | of_tags)
        for path in templates.rglob("*.*")
    }
    assert len(found) > 100
    assert {name: texts for name, texts in found.items() if texts} == {}


def _without_tags(source: str) -> str:
    """What stands in a template outside of its tags, and of what these translate or use as a name of a class."""
    kept, until = [], ""
    for token in Lexer(source).tokenize():
        words = token.split_contents() if token.token_type == TokenType.BLOCK else [""]
        if words[0] in ("blocktranslate", "comment"):
            until = f"end{words[0]}"
        elif words[0] == "block" and words[1].endswith("_class"):
            until = "endblock"
        elif words[0] == until:
            until = ""
        elif token.token_type == TokenType.TEXT and not until:
            kept.append(token.contents)
    return "".join(kept)


def test_scripts_have_no_words():
    """Templates give them in data attributes."""
    names = {
        "Escape",
        "GET",
        "POST",
        "Kept-At",
        "X",
        "Z",
        "X-CSRFToken",
        "X-Requested-With",
    }  # of keys and headers
    for path in (catalogs.ROOT / "static" / "js").rglob("*.js"):
        code = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
        said = {text for _mark, text in re.findall(r"""(["'`])([A-Z].*?)\1""", code)}
        assert said <= names, path


def test_each_sentence_that_is_said_again_is_one_that_rows_hold():
    """Its parts between the places stand in the code of the engine, or of the notices."""
    engine = [*(catalogs.ROOT / "runs").rglob("*.py")]
    notices = [*(catalogs.ROOT / "approvals" / "notices").rglob("*.py")]
    for sentences, places in ((of_runs, engine), (of_schedules, engine), (troubles, notices)):
        code = " ".join(
            path.read_text()
            for path in places
            if path.name not in ("recorded.py", "admin_words.py", "troubles.py")
        )
        for sentence in sentences.all:
            for part in re.split(r"%\(\w+\)s", sentence):
                assert part.strip("' .") in code, sentence


def test_what_the_engine_recorded_is_said_in_german_and_nothing_else():
    gone = "the worker was gone before the answer came"
    late = f"charge#1: sent, outcome unknown ({gone}); no way to ask the provider gave an answer"
    ended = "Its parent, run 4f2a91, is failed."
    fields = "write five fields: minute, hour, day of the month, month, day of the week"
    killed = "Poison: 4 workers that drove it alone died. host:boot:9:1 ended without word in node 'pay'"
    with translation.override("de"):
        assert of_runs.retold(ended) == "Sein Elternlauf 4f2a91 ist fehlgeschlagen."
        assert of_runs.retold("Rejected by ada: too: dear") == "Abgelehnt von ada: too: dear"
        assert of_runs.retold(late).startswith("charge#1: gesendet, Ausgang unbekannt (der Worker war weg")
        said = of_runs.retold(killed)
        assert said.startswith("Gift: 4 Worker") and said.endswith("host:boot:9:1 verstummte im Knoten „pay“")
        for theirs in ("Permanent: the card was refused", "", "Its parent is failed", "100 % (%(x)s) done"):
            assert of_runs.retold(theirs) == theirs
        typed = of_schedules.retold(f"'x' is no cron expression ({fields}). An example: 30 2 * * 1-5.")
        assert typed.startswith("'x' ist kein Cron-Ausdruck (schreiben Sie fünf Felder: ")
        assert troubles.retold("the mail server answered 451") == "der Mailserver antwortete 451"
    assert of_runs.retold(late) == late


@pytest.mark.django_db(transaction=True)
def test_mail_comes_in_the_language_in_which_a_person_keeps_their_wishes(client, ada, bob, settings):
    """B7: subject, text and HTML; who has kept none is written to in the site's language."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "site_url": "https://example.com"}
    for someone in (ada, bob):
        someone.email = f"{someone.username}@example.com"
        someone.save()
    client.force_login(ada)
    assert client.post("/notices/", {"mail": ["asked"]}, follow=True, **GERMAN).status_code == 200
    assert NoticeWish.objects.get(person=ada).language == "de"
    ask(PAYLOAD, question=QUESTION, why=WHY)
    do_due()
    mails = {message.to[0].partition("@")[0]: message for message in mail.outbox}
    assert mails.keys() == {"ada", "bob"}
    for name, language in (("ada", "de"), ("bob", "en")):
        html = mails[name].alternatives[0][0]
        with translation.override(language):
            act, promise = (
                translation.gettext(text)
                for text in (
                    "Open and decide",
                    "The link opens a page. Nothing is decided by opening it.",
                )
            )
        assert act in mails[name].body and promise in mails[name].body and act in html
        assert f'lang="{language}"' in html
    assert mails["ada"].subject.partition(":")[0] != mails["bob"].subject.partition(":")[0]


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


@pytest.mark.django_db
def test_what_is_sent_to_a_person_follows_the_language_that_they_choose(client, ada):
    """And it leaves alone of what they want mail."""
    client.force_login(ada)
    client.post("/notices/", {"mail": ["asked"]})
    wish = NoticeWish.objects.get(person=ada)
    assert wish.language == "en"
    for chosen, spoken in (("de", "de"), ("en", "en"), ("", "de")):
        client.post("/runs/preferences/", {"theme": "dark", "language": chosen}, **GERMAN)
        kept = NoticeWish.objects.get(person=ada)
        assert (kept.language, kept.unwanted) == (spoken, wish.unwanted)
    client.post("/runs/preferences/", {"theme": "dark"})
    assert NoticeWish.objects.get(person=ada).language == "de", (
        "a form that says nothing of it changes nothing"
    )


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


@pytest.mark.parametrize(
    "text",
    [
        "a: " * 20_000,
        "a: " * 160,
        "Its node '" + "' killed 1 workers, the last one w (" * 300,
        "Its node '" + "' killed 1 workers, the last one w (" * 13,
        "Poison: 1 workers that drove it alone died. " * 400,
        "Poison: 1 workers that drove it alone died. " * 11,
        "sent, outcome unknown (" * 20 + "x); no way to ask the provider gave an answer" * 1,
        "Rejected by " + "x: " * 150,
    ],
)
def test_what_nearly_is_a_sentence_of_ours_ends_no_page(text):
    """Authors and providers may write anything: none of it is looked at long, or more than one sentence deep."""
    with translation.override("de"):
        assert len(of_runs.retold(text)) > len(text) / 2
        assert of_runs.retold("Poison: 3 workers that drove it alone died. " + text).startswith(
            ("Poison", "Gift")
        )
