"""Send one e-mail, at most once, and say truly whether it went out.

Settings: EMAIL_BACKEND and what belongs to it, DEFAULT_FROM_EMAIL.
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.core.validators import validate_email
from pydantic import AfterValidator, Field

from examples.mail_lookup import KEY_HEADER, find_sent
from runs import Ambiguous, Permanent, Retry, Transient, tool

if TYPE_CHECKING:
    from collections.abc import Callable

SUBJECT_CHARACTERS = 200
BODY_CHARACTERS = 100_000

logger = logging.getLogger(__name__)


def address(text: str) -> str:
    """`text` if it is one plain e-mail address, else ValueError."""
    try:
        validate_email(text)
    except ValidationError:
        raise ValueError(f"{text!r} is not one plain e-mail address such as name@example.com") from None
    return text


Address = Annotated[
    str,
    Field(max_length=254, title="To", json_schema_extra={"format": "email"}),
    AfterValidator(address),
]
# One line: a line break in a subject would begin another header.
Subject = Annotated[
    str,
    Field(min_length=1, max_length=SUBJECT_CHARACTERS, pattern=r"^[^\r\n]+$", title="Subject"),
]
Body = Annotated[
    str,
    Field(min_length=1, max_length=BODY_CHARACTERS, title="Body", json_schema_extra={"format": "textarea"}),
]


@tool(kind="write", limit=timedelta(seconds=30), retry=Retry(attempts=5), reconcile=find_sent)
def send_email(
    to: Address, subject: Subject, body: Body, *, idempotency_key: str, timeout: float = 30.0
) -> str:
    """Send one plain text e-mail; it cannot be called back.

    Raises Permanent if the message cannot be sent as it is, Transient if it surely was not sent but may be
    later, Ambiguous if the connection broke when the message was already under way.
    """
    message = _message(to, subject, body, idempotency_key)
    deadline = time.monotonic() + timeout
    connection = _connection(timeout)
    try:
        _open(connection, to)
        _send(connection, message, to, deadline)
    finally:
        _close(connection)
    return message.extra_headers["Message-ID"]


def message_id(idempotency_key: str) -> str:
    """The Message-ID of the message with this key: the same however often it is made."""
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "localhost"
    return f"<{hashlib.sha256(idempotency_key.encode()).hexdigest()[:32]}@{domain}>"


def _message(to: str, subject: str, body: str, idempotency_key: str) -> EmailMessage:
    try:
        address(to)
    except ValueError as wrong:
        raise Permanent(f"The message was not sent: {wrong}.") from None
    for name, text, limit in (("subject", subject, SUBJECT_CHARACTERS), ("body", body, BODY_CHARACTERS)):
        if not text.strip():
            raise Permanent(f"The message to {to} was not sent: its {name} is empty.")
        if len(text) > limit:
            raise Permanent(
                f"The message to {to} was not sent: its {name} is longer than {limit} characters."
            )
        _refuse_unmailable(to, name, text)
    if "\n" in subject or "\r" in subject:
        raise Permanent(
            f"The message to {to} was not sent: its subject holds a line break; write it in one line."
        )
    message = EmailMessage(
        subject=subject,
        body=body,
        to=[to],
        headers={"Message-ID": message_id(idempotency_key), KEY_HEADER: idempotency_key},
    )
    try:
        message.message().as_bytes()
    except (ValueError, LookupError) as wrong:  # a sender or key that no header can hold
        raise Permanent(f"The message to {to} was not sent: it cannot be written as mail: {wrong}") from wrong
    return message


def _refuse_unmailable(to: str, name: str, text: str) -> None:
    if "\x00" in text:
        raise Permanent(
            f"The message to {to} was not sent: its {name} holds a NUL character, which mail cannot carry."
        )
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        raise Permanent(
            f"The message to {to} was not sent: its {name} holds half of a surrogate pair "
            f"at character {wrong.start}."
        ) from None


def _connection(timeout: float) -> BaseEmailBackend:
    try:
        return get_connection(timeout=timeout)
    except (ImportError, ImproperlyConfigured) as wrong:
        raise Permanent(f"EMAIL_BACKEND {settings.EMAIL_BACKEND!r} cannot be used: {wrong}") from wrong


def _open(connection: BaseEmailBackend, to: str) -> None:
    """Connect and sign in; whatever goes wrong here, nothing was sent."""
    if not isinstance(connection, SmtpBackend):
        return  # a file, a list in memory or an HTTP client has no sign-in of its own: sending opens it
    place = f"{connection.host}:{connection.port}"
    try:
        connection.open()
    except (smtplib.SMTPAuthenticationError, smtplib.SMTPNotSupportedError) as refused:
        code = getattr(refused, "smtp_code", 535)
        kind = Transient if 400 <= code < 500 else Permanent
        raise kind(
            f"The message to {to} was not sent: {place} refused the sign-in: {_reply(refused)}"
        ) from refused
    except OSError as unreachable:  # smtplib's errors are OSErrors too
        raise Transient(
            f"The message to {to} was not sent: no connection to {place}: {unreachable}"
        ) from unreachable


def _send(connection: BaseEmailBackend, message: EmailMessage, to: str, deadline: float) -> None:
    """Hand the message over; once its text may have left, only a clear answer settles its fate."""
    under_way = _watch(connection, to, deadline)
    try:
        connection.send_messages([message])
    except (Transient, Permanent):
        raise
    except smtplib.SMTPRecipientsRefused as refused:
        code, reply = next(iter(refused.recipients.values()))
        raise _refusal(to, code, reply) from refused
    except smtplib.SMTPResponseException as answer:
        if 400 <= answer.smtp_code < 600:
            raise _refusal(to, answer.smtp_code, answer.smtp_error) from answer
        raise _broken_off(to, answer, under_way()) from answer
    except Exception as broken:  # any backend may be set: what is not understood may have been sent
        raise _broken_off(to, broken, under_way()) from broken


def _watch(connection: BaseEmailBackend, to: str, deadline: float) -> Callable[[], bool]:
    """Tells whether the text may have left; SMTP is also kept from beginning with it after the deadline.

    smtplib's errors do not tell where a connection broke, so its step that sends the text is watched. With
    any other backend the text may have left as soon as it is called.
    """
    if not isinstance(connection, SmtpBackend):
        return lambda: True
    smtp = connection.connection
    send_text = smtp.data
    begun: list[float] = []

    def data(text: bytes) -> tuple[int, bytes]:
        now = time.monotonic()
        if now >= deadline:
            raise Transient(
                f"The message to {to} was not sent: the mail server was too slow to come to it in time."
            )
        smtp.sock.settimeout(deadline - now)
        begun.append(now)
        return send_text(text)

    smtp.data = data
    return lambda: bool(begun)


def _refusal(to: str, code: int, reply: bytes | str) -> Transient | Permanent:
    """A clear no: with 4xx the server did not take the message now, with 5xx never (RFC 5321, 4.2.1)."""
    words = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    kind = Transient if 400 <= code < 500 else Permanent
    return kind(f"The message to {to} was not sent: the mail server answered {code} {words}")


def _broken_off(to: str, error: Exception, under_way: bool) -> Ambiguous | Transient:
    if under_way:
        return Ambiguous(
            f"The message to {to} may or may not have been sent: {type(error).__name__}: {error}"
        )
    return Transient(f"The message to {to} was not sent: the connection broke before its text: {error}")


def _close(connection: BaseEmailBackend) -> None:
    """Say goodbye; the message's fate is known by now, so a failure here is not the message's."""
    try:
        connection.close()
    except Exception:
        logger.warning("The connection to the mail server could not be closed in good order.", exc_info=True)


def _reply(error: Exception) -> str:
    words = getattr(error, "smtp_error", None)
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words or error)
