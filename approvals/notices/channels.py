"""The ways a notice goes: by mail, to a chat, to a webhook. Each sends one, or raises NotSent."""

from __future__ import annotations

import json
import smtplib
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.translation import override
from standardwebhooks import Webhook

from approvals.notices import guard, words
from approvals.notices.chats import chat_at
from approvals.notices.spoken import language_of
from approvals.notices.wording import digest, event, wording

if TYPE_CHECKING:
    import httpx

    from approvals.models import Notice

TIMEOUT_SECONDS = 10.0  # for each wait for a webhook
LONGEST_SECONDS = 20.0  # for a whole attempt at a webhook or chat, redirects and slow answers and all
MOST_REDIRECTS = 3
SAME_AGAIN = (307, 308)  # the redirects that keep method and body
GONE = 410


class NotSent(Exception):
    """Why, in words for an operator, without the address. `is_final`: trying again would change nothing."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


def send_mail(notice: Notice) -> None:
    with override(language_of(notice)):
        _send_mail(notice)


def _send_mail(notice: Notice) -> None:
    host = urlsplit(settings.DURABLEWEB["site_url"]).hostname or "localhost"
    if notice.parts == [notice]:
        template, said = "mail", wording(notice)
        told = {"said": said, "title": notice.approval.title}
    else:
        template, said = "digest", digest(notice)
        told = {"said": said}
    message = EmailMultiAlternatives(
        subject=said.subject,
        body=render_to_string(f"approvals/notices/{template}.txt", told),
        to=[notice.person.email],
        headers={
            "Message-ID": f"<{notice.pk}@{host}>",
            # one approval, one thread
            **({"References": f"<{notice.approval_id}@{host}>"} if template == "mail" else {}),
            "Date": formatdate(notice.made_at.timestamp(), localtime=False),
            "Auto-Submitted": "auto-generated",
            "X-Auto-Response-Suppress": "All",
            "List-Unsubscribe": f"<{said.wishes_link}>",
        },
    )
    message.attach_alternative(render_to_string(f"approvals/notices/{template}.html", told), "text/html")
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code = next((code for code, _said in error.recipients.values()), 0)
        raise NotSent(f"the mail server refuses the address ({code})", is_final=500 <= code < 600) from None
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"the mail server answered {error.smtp_code}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"the mail server cannot be reached ({type(error).__name__})") from None


def send_chat(notice: Notice) -> None:
    with override(language_of(notice)):
        _send_chat(notice)


def _send_chat(notice: Notice) -> None:
    said = wording(notice)
    lines = [notice.approval.title, said.lead, *(f"{name}: {what}" for name, what in said.facts)]
    if said.payload:
        lines.append(said.payload)
    lines.append(said.link)
    chat = chat_at(_url_of(notice))
    if chat is None:
        raise NotSent("Apprise does not know such an address", is_final=True)
    with guard.outside_only(LONGEST_SECONDS):
        try:
            is_sent = chat.notify(title=said.subject, body="\n".join(lines))
        except OSError:
            is_sent = False
    if guard.refused():
        raise NotSent(f"refused: {guard.refused()}", is_final=True)
    if not is_sent:
        _must_be_in_time()
        raise NotSent(f"{chat.service_name} did not take it")


def send_webhook(notice: Notice) -> None:
    """Signed anew for each try, for the signature holds its time; the id stays."""
    import httpx  # with its command line's libraries; most processes send nothing

    body = json.dumps(event(notice), ensure_ascii=False, separators=(",", ":"))
    at, number = datetime.now(UTC), str(notice.pk)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "durableweb",
        "webhook-id": number,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(notice.target.signing_key).sign(number, at, body),
    }
    url = _url_of(notice)
    try:
        with (
            guard.outside_only(LONGEST_SECONDS),
            httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client,
        ):
            status = _post(client, url, body.encode(), headers)
    except httpx.InvalidURL:
        raise NotSent("its address, or where it leads on, is none", is_final=True) from None
    except httpx.HTTPError as error:
        if guard.refused():
            raise NotSent(f"refused: {guard.refused()}", is_final=True) from None
        _must_be_in_time()
        raise NotSent(f"no answer ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise NotSent(f"it answered {status}", is_final=status == GONE)


def is_readable(url: str) -> bool:
    """Whether the client that sends webhooks finds a host in it."""
    import httpx

    try:
        return bool(httpx.URL(url).host)
    except httpx.InvalidURL:
        return False


def _post(client: httpx.Client, url: str, body: bytes, headers: dict[str, str]) -> int:
    """The status at the end of at most three redirects that keep the body; each connection passes the guard."""
    for _hop in range(MOST_REDIRECTS + 1):
        with client.stream("POST", url, content=body, headers=headers) as answer:  # what it says is not read
            if answer.status_code not in SAME_AGAIN:
                return answer.status_code
            onward = urljoin(url, answer.headers.get("Location", ""))
        if urlsplit(onward).scheme not in ("https", urlsplit(url).scheme):
            raise NotSent("it leads on to an address without https", is_final=True)
        url = onward
    raise NotSent(f"it leads on more than {MOST_REDIRECTS} times")


def _must_be_in_time() -> None:
    if guard.was_too_long():
        raise NotSent(f"no whole answer within {LONGEST_SECONDS:g} s") from None


def _url_of(notice: Notice) -> str:
    try:
        return notice.target.url
    except ValidationError as error:
        raise NotSent(" ".join(error.messages), is_final=True) from None


SENDERS: dict[str, Callable[[Notice], None]] = {
    words.MAIL: send_mail,
    words.CHAT: send_chat,
    words.WEBHOOK: send_webhook,
}
