"""One e-mail: sent, surely not sent, or unknown, against a real SMTP server that fails at every point."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from examples.mail import message_id, send_email
from runs import Ambiguous, Permanent, Transient
from tests.examples import smtp_server
from tests.examples.smtp_server import Postbox, Says

KEY = "email:01890000-0000-7000-8000-000000000001:brief"
Post = Callable[[Postbox], Postbox]


def send(to="pm@example.com", subject="Brief", body="Hello.\n", key=KEY, timeout=60.0) -> str:
    return send_email.fn(to, subject, body, idempotency_key=key, timeout=timeout)


@pytest.fixture
def smtp(settings) -> Iterator[Post]:
    """Starts a mail server with the given postbox and sends to it."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "127.0.0.1", "Briefs <briefs@example.org>"
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    with ExitStack() as open_servers:

        def start(postbox: Postbox) -> Postbox:
            settings.EMAIL_PORT = open_servers.enter_context(smtp_server.listening(postbox))
            return postbox

        yield start


def test_a_message_arrives_with_its_key_and_an_id_made_from_it(smtp):
    postbox = smtp(Postbox())

    sent = send(subject="Über Kanäle", body="Grüße\nund mehr\n.\nEnde\n")

    (message,) = postbox.messages
    assert message["Message-ID"] == sent == message_id(KEY)
    assert sent.endswith("@example.org>")
    assert message["X-Idempotency-Key"] == KEY
    assert (message["To"], message["Subject"]) == ("pm@example.com", "Über Kanäle")
    assert message.get_content().replace("\r\n", "\n") == "Grüße\nund mehr\n.\nEnde\n"


def test_the_message_id_is_the_same_for_the_same_key_and_another_for_another():
    assert message_id(KEY) == message_id(KEY) != message_id(KEY + "2")


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize(("reply", "kind"), [("451 try later", Transient), ("554 not wanted", Permanent)])
def test_a_clear_no_is_surely_not_sent(smtp, command, reply, kind):
    postbox = smtp(Says(command, reply))

    with pytest.raises(kind, match=f"pm@example.com was not sent: the mail server answered {reply}"):
        send()
    assert postbox.messages == []


def test_no_server_there_is_surely_not_sent(settings, smtp):
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = nobody_listens.getsockname()[1]
        with pytest.raises(
            Transient, match=f"was not sent: no connection to 127.0.0.1:{settings.EMAIL_PORT}"
        ):
            send()


def test_an_unknown_host_is_surely_not_sent(settings, smtp):
    settings.EMAIL_HOST = "mail.invalid"
    with pytest.raises(Transient, match="no connection to mail.invalid"):
        send()


def test_a_server_that_offers_no_sign_in_is_a_setting_to_be_corrected(settings, smtp):
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = "briefs-account"
    postbox = smtp(Postbox())

    with pytest.raises(Permanent, match="refused the sign-in") as refused:
        send()
    assert "briefs-account" not in str(refused.value)
    assert postbox.messages == []


def test_a_connection_that_breaks_before_the_text_is_surely_not_sent(smtp):
    postbox = smtp(smtp_server.BreaksAtRecipient())

    with pytest.raises(Transient, match="the connection broke before its text"):
        send()
    assert postbox.messages == []


@pytest.mark.parametrize("fault", [smtp_server.LosesTheAnswer, smtp_server.NeverAnswers, smtp_server.Garbles])
def test_a_connection_that_breaks_after_the_text_leaves_it_unknown(smtp, fault):
    postbox = smtp(fault())

    with pytest.raises(Ambiguous, match="pm@example.com may or may not have been sent"):
        send(timeout=5.0)
    assert len(postbox.messages) == 1  # it was sent indeed, which the sender cannot know


def test_a_broken_goodbye_does_not_make_a_sent_message_unsent(smtp):
    postbox = smtp(smtp_server.BreaksAtGoodbye())

    assert send() == message_id(KEY)
    assert len(postbox.messages) == 1


def test_the_text_is_not_begun_after_the_time_limit(smtp):
    """Section 6 of the design counts on it that a call cannot act after its limit."""
    postbox = smtp(smtp_server.Dawdles(0.2))

    with pytest.raises(Transient, match="too slow"):
        send(timeout=0.3)
    assert postbox.messages == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"to": "nobody"}, "'nobody' is not one plain e-mail address"),
        ({"to": "a@example.com, b@example.com"}, "not one plain e-mail address"),
        ({"to": "a@example.com\nBcc: b@example.com"}, "not one plain e-mail address"),
        ({"to": ""}, "not one plain e-mail address"),
        ({"subject": "Brief\nBcc: b@example.com"}, "line break"),
        ({"subject": "Brief\rX: y"}, "line break"),
        ({"subject": " "}, "subject is empty"),
        ({"subject": "x" * 201}, "longer than 200"),
        ({"subject": "a\x00b"}, "NUL"),
        ({"body": "\n"}, "body is empty"),
        ({"body": "a\x00b"}, "NUL"),
        ({"body": "a\ud800b"}, "half of a surrogate pair at character 1"),
        ({"body": "x" * 100_001}, "longer than 100000"),
        ({"key": "a\nBcc: b@example.com"}, "cannot be written as mail"),
    ],
)
def test_what_cannot_be_mail_is_refused_before_anything_is_sent(smtp, wrong, words):
    postbox = smtp(Postbox())

    with pytest.raises(Permanent, match=words):
        send(**wrong)
    assert postbox.messages == []


def test_a_backend_that_does_not_exist_is_named(settings):
    settings.EMAIL_BACKEND = "no.such.Backend"
    with pytest.raises(Permanent, match="EMAIL_BACKEND 'no.such.Backend' cannot be used"):
        send()


def test_what_any_other_backend_raises_may_have_been_sent(settings):
    settings.EMAIL_BACKEND = "tests.examples.test_mail.BreaksAnywhere"
    with pytest.raises(Ambiguous, match="may or may not have been sent: RuntimeError: broken"):
        send()


class BreaksAnywhere:
    """An e-mail backend of which nothing is known."""

    def __init__(self, **_: object) -> None:
        """Takes whatever Django gives it."""

    def send_messages(self, messages: object) -> int:
        raise RuntimeError("broken")

    def close(self) -> None:
        """Nothing is open."""
