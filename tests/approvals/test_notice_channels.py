"""The ways a notice goes, each against a real receiver: mail, files, webhooks, chats; and a kill in the middle."""

from __future__ import annotations

import email
import email.policy
import json
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
from django.core import mail
from standardwebhooks import Webhook

from approvals.models import Notice, NoticeWish, Target
from approvals.notices import channels
from runs import chores
from runs.engine import clock
from runs.testing.process import die, in_child
from tests.approvals.cases import MAIL, ask
from tests.approvals.notice_server import Receiver, receiving, target
from tests.examples.smtp_server import Postbox, Says, listening
from tests.runs.driving import do_due, pass_time

pytestmark = pytest.mark.django_db

LOOPBACK = [ip_network("127.0.0.1/32")]


@pytest.fixture(autouse=True)
def on(settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {
        "site_url": "https://approvals.example",
        "notice_networks": LOOPBACK,
    }
    yield
    clock.AHEAD = timedelta()


@pytest.fixture
def by_smtp(settings):
    """by_smtp(postbox) sends mail there until the test ends."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_TIMEOUT = "127.0.0.1", 30

    def use(port: int) -> None:
        settings.EMAIL_PORT = port

    return use


# -- mail ----------------------------------------------------------------------------------------------------


def test_a_mail_has_text_and_html_a_stable_id_and_no_payload(ada, by_smtp):
    postbox = Postbox()
    with listening(postbox) as port:
        by_smtp(port)
        approval = ask(due=timedelta(hours=8), risk="high", question="Send <b>it</b>\r\nBcc: x@example.com?")
        do_due()
    (message,) = postbox.messages
    notice = Notice.objects.get()
    assert (notice.status, notice.tries) == ("sent", 1)
    assert message["To"] == "ada@example.com" and message["Bcc"] is None
    assert message["Subject"].startswith("For you to decide: Send <b>it</b> Bcc:")
    assert message["Message-ID"] == f"<{notice.pk}@approvals.example>"
    assert message["References"] == f"<{approval.pk}@approvals.example>"
    assert message["Auto-Submitted"] == "auto-generated"
    text = message.get_body(("plain",)).get_content()
    html = message.get_body(("html",)).get_content()
    for part in (text, html):
        assert f"https://approvals.example/approvals/{approval.pk}/" in part
        assert "Decide by" in part and "high" in part
        assert "helen@example.com" not in part and "Dear Helen" not in part
    assert "&lt;b&gt;it&lt;/b&gt;" in html and "<b>it</b>" not in html


@pytest.mark.parametrize("tell", [False, True])
def test_the_payload_is_told_only_where_the_author_allows_it(ada, tell):
    ask(**({"tell": True} if tell else {}))
    do_due()
    (message,) = mail.outbox
    for part in (message.body, message.alternatives[0][0]):
        assert ("helen@example.com" in part) is tell


def test_mail_of_an_installation_without_a_server_is_a_file(ada, settings, tmp_path):
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = "examples.mail_folder.EmailBackend", str(tmp_path)
    ask()
    do_due()
    (file,) = Path(tmp_path).glob("*.eml")
    message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
    assert message["To"] == "ada@example.com"


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        ("550 no such person", "failed", "the mail server refuses the address (550)"),
        ("450 later", "waiting", "the mail server refuses the address (450)"),
    ],
)
def test_an_address_that_the_server_refuses_is_given_up_or_tried_again(ada, by_smtp, reply, status, said):
    with listening(Says("RCPT", reply)) as port:
        by_smtp(port)
        ask()
        do_due()
    assert Notice.objects.values_list("status", "error").get() == (status, said)


def test_a_server_that_is_away_is_tried_again_and_operators_see_it(ada, olga, client, by_smtp):
    with listening(Postbox()) as port:
        by_smtp(port)
    ask()
    do_due()
    assert Notice.objects.get().error == "the mail server cannot be reached (ConnectionRefusedError)"
    client.force_login(olga)
    assert "1 mail could not be sent yet" in client.get("/notices/").content.decode()
    postbox = Postbox()
    with listening(postbox) as port:
        by_smtp(port)
        pass_time(61)
        do_due()
    assert len(postbox.messages) == 1 and Notice.objects.get().status == "sent"


# -- webhooks ------------------------------------------------------------------------------------------------


def test_a_webhook_is_signed_and_says_what_happened_without_the_payload(ada):
    with receiving(Receiver()) as receiver:
        hook = target(receiver.url)
        approval = ask(reviewers=("pm",))
        do_due()
    ((_path, headers, body),) = receiver.got
    told = Webhook(hook.signing_key).verify(body, headers)
    notice = Notice.objects.get(target=hook)
    assert headers["webhook-id"] == str(notice.pk)
    assert told["type"] == "approval.asked"
    assert told["data"]["approval"] == str(approval.pk) and told["data"]["reviewers"] == ["pm"]
    assert told["data"]["url"] == f"https://approvals.example/approvals/{approval.pk}/"
    assert "payload" not in told["data"] and MAIL["to"] not in body.decode()
    hook.refresh_from_db()
    assert hook.failing_since is None and hook.sent_at is not None


def test_a_webhook_hears_of_the_whole_life(ada, bob):
    with receiving(Receiver()) as receiver:
        target(receiver.url)
        approval = ask(due=timedelta(hours=8), tell=True)
        do_due()
        approval.assign(ada, bob)
        do_due()
        type(approval).objects.get(pk=approval.pk).decide(by=bob, verdict="approve")
        pass_time(10)
        do_due()
    told = [json.loads(body) for _path, _headers, body in receiver.got]
    assert [one["type"] for one in told] == ["approval.asked", "approval.assigned", "approval.decided"]
    assert told[0]["data"]["payload"] == MAIL and told[2]["data"]["outcome"] == "approved"


def test_a_target_is_told_only_what_it_is_for(ada):
    with receiving(Receiver()) as receiver:
        for more in ({"graph": "other"}, {"reviewer": "legal"}, {"occasions": ["decided"]}, {"is_on": False}):
            target(receiver.url, **more)
        wanted = target(receiver.url, graph="mailing", reviewer="pm")
        ask()
        do_due()
    assert len(receiver.got) == 1 and Notice.objects.get(target__isnull=False).target == wanted


def test_a_target_that_fails_is_seen_by_operators_rests_and_recovers(ada, olga, client):
    with receiving(Receiver(500, 200)) as receiver:
        hook = target(receiver.url)
        ask()
        ask()
        do_due()
        assert len(receiver.got) == 1, "the second waits with the first"
        hook.refresh_from_db()
        assert hook.failing_since is not None and hook.last_error == "it answered 500"
        client.force_login(olga)
        assert f"{hook.name} takes no notices" in client.get("/notices/").content.decode()
        client.force_login(ada)
        assert hook.name not in client.get("/notices/").content.decode()
        first = receiver.got[0][1]["webhook-id"]
        pass_time(61)
        do_due()
    assert len(receiver.got) == 3 and first in [headers["webhook-id"] for _, headers, _ in receiver.got[1:]]
    hook.refresh_from_db()
    assert hook.failing_since is None


@pytest.mark.parametrize(("answer", "status"), [(410, "failed"), (404, "waiting"), (302, "waiting")])
def test_what_is_gone_is_given_up_and_what_is_not_taken_is_tried_again(ada, answer, status):
    with receiving(Receiver(answer)) as receiver:
        target(receiver.url)
        ask()
        do_due()
    assert Notice.objects.get(target__isnull=False).status == status


def test_a_redirect_that_keeps_the_body_is_followed_and_another_is_a_failure(ada):
    with receiving(Receiver()) as there, receiving(Receiver((307, there.url))) as here:
        hook = target(here.url)
        ask()
        do_due()
    ((_path, headers, body),) = there.got
    assert Webhook(hook.signing_key).verify(body, headers)["type"] == "approval.asked"


def test_a_circle_of_redirects_ends(ada):
    receiver = Receiver()
    with receiving(receiver):
        receiver.answers = [(308, receiver.url)]
        target(receiver.url)
        ask()
        do_due()
    assert len(receiver.got) == channels.MOST_REDIRECTS + 1
    assert Notice.objects.get(target__isnull=False).error == "it leads on more than 3 times"


def test_an_address_that_nobody_can_read_is_given_up(ada):
    target("http://①②⑦.0.0.2/x")
    ask()
    do_due()
    notice = Notice.objects.get(target__isnull=False)
    assert (notice.status, notice.error) == ("failed", "its address, or where it leads on, is none")


@pytest.mark.parametrize("onward", ["http://hooks.example/", "ftp://hooks.example/", "file:///etc/passwd"])
def test_a_redirect_leads_to_nothing_less_than_https(onward):
    """What is signed is no secret, but what it says is not for everybody on the way."""
    asked = []

    def answer(request):
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": onward})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client, pytest.raises(channels.NotSent) as no:
        channels._post(client, "https://hooks.example/room", b"{}", {})
    assert no.value.is_final and "without https" in str(no.value)
    assert asked == ["https://hooks.example/room"]


def test_addresses_are_stored_sealed(ada):
    """O4: they hold what lets anybody write there."""
    hook = target("https://hooks.example/services/T0/verysecret")
    assert "verysecret" not in str(Target.objects.values().get(pk=hook.pk))
    assert hook.shown_url == "https://hooks.example/…"


# -- chats ---------------------------------------------------------------------------------------------------


def test_a_chat_is_told_by_apprise_without_the_payload(ada):
    with receiving(Receiver()) as receiver:
        target(f"json://127.0.0.1:{receiver.port}/room", "chat")
        approval = ask()
        do_due()
    ((path, _headers, body),) = receiver.got
    said = json.loads(body)
    assert path == "/room" and said["title"].startswith("For you to decide: Send the mail?")
    assert f"https://approvals.example/approvals/{approval.pk}/" in said["message"]
    assert MAIL["to"] not in said["message"]
    assert Notice.objects.get(channel="chat").status == "sent"


def test_a_chat_is_told_in_its_language_or_in_that_of_the_user_whom_it_is_for(ada):
    """B7: staff say it of a target; one that is for one user follows them; a group's is told in the site's."""
    NoticeWish.speak(ada, "de")
    with receiving(Receiver()) as receiver:
        for room, of_target in {
            "group": {},
            "theirs": {"reviewer": "ada"},
            "said": {"language": "de"},
            "other": {"reviewer": "ada", "language": "en"},
            "gone": {"language": "xx"},
        }.items():
            target(f"json://127.0.0.1:{receiver.port}/{room}", "chat", **of_target)
        ask(reviewers=["ada", "bob"])
        do_due()
    told = {path.strip("/"): json.loads(body) for path, _headers, body in receiver.got}
    english, german = "For you to decide: Send the mail?", "Für Sie zu entscheiden: Send the mail?"
    assert {room: said["title"] for room, said in told.items()} == {
        "group": english,
        "theirs": german,
        "said": german,
        "other": english,
        "gone": english,
    }
    assert "Ein Lauf wartet auf Ihre Entscheidung." in told["theirs"]["message"]
    assert english.partition(":")[0] not in told["theirs"]["message"]


def test_a_chat_that_does_not_take_it_is_tried_again(ada):
    with receiving(Receiver(500)) as receiver:
        target(f"json://127.0.0.1:{receiver.port}/room", "chat")
        ask()
        do_due()
    assert Notice.objects.get(channel="chat").status == "waiting"


# -- a kill between sending and noting -----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_killed_between_sending_and_noting_it_is_sent_again_under_the_same_id(ada, monkeypatch):
    """At least once: who keeps ids sees it once."""
    with receiving(Receiver()) as receiver:
        hook = target(receiver.url)
        ada.email = ""
        ada.save()
        ask()

        def send_and_die(notice):
            channels.send_webhook(notice)
            die()

        def work(_tell):
            monkeypatch.setitem(channels.SENDERS, "webhook", send_and_die)
            do_due()

        assert in_child(work).killed
        notice = Notice.objects.get(target=hook)
        assert (notice.status, notice.tries) == ("waiting", 1), "the try was counted before it was made"
        assert chores.do_due() == 0, "its lease holds"
        pass_time(181)
        do_due()
    ids = [headers["webhook-id"] for _path, headers, _body in receiver.got]
    assert ids == [str(notice.pk)] * 2
    notice.refresh_from_db()
    assert (notice.status, notice.tries) == ("sent", 2)
