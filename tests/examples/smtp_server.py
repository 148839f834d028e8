"""A local SMTP server that takes mail, and can fail at each point of the conversation."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any  # aiosmtpd's sessions and envelopes are untyped

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP


class Postbox:
    """Takes every message into `messages`; subclasses fail instead or afterwards."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        self.messages.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 taken"


class LosesTheAnswer(Postbox):
    """Takes the message, then the connection breaks before the answer: sent, but the sender cannot know."""

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        await super().handle_DATA(server, session, envelope)
        server.transport.abort()
        return "250 nobody hears this"


class NeverAnswers(Postbox):
    """Takes the message and is silent."""

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        await super().handle_DATA(server, session, envelope)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class Garbles(Postbox):
    """Takes the message and answers with what is no SMTP reply."""

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        await super().handle_DATA(server, session, envelope)
        return "hello?"


class BreaksAtRecipient(Postbox):
    """The connection breaks before any text was sent."""

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        server.transport.abort()
        return "250 nobody hears this"


class Says(Postbox):
    """Answers `reply` at `command`: MAIL, RCPT or DATA."""

    def __init__(self, command: str, reply: str) -> None:
        super().__init__()
        self.command, self.reply = command, reply

    async def handle_MAIL(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if self.command == "MAIL":
            return self.reply
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if self.command == "RCPT":
            return self.reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        if self.command == "DATA":
            return self.reply
        return await super().handle_DATA(server, session, envelope)


class BreaksAtGoodbye(Postbox):
    """Takes the message, says so, and answers QUIT with an error."""

    async def handle_QUIT(self, server: SMTP, session: Any, envelope: Any) -> str:
        server.transport.abort()
        return "421 bye"


class Dawdles(Postbox):
    """Each command takes a while, none so long that it alone is too late."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def handle_MAIL(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        await asyncio.sleep(self.seconds)
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        await asyncio.sleep(self.seconds)
        envelope.rcpt_tos.append(address)
        return "250 OK"


@contextmanager
def listening(postbox: Postbox) -> Iterator[int]:
    """The port on 127.0.0.1 where `postbox` receives mail."""
    controller = _OnFreePort(postbox, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop(no_assert=True)


class _OnFreePort(Controller):
    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
