"""Ask the mail provider whether a message went out."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from django.core.mail import get_connection
from django.core.mail.backends.filebased import EmailBackend as FileBackend

from examples.mail_folder import SUFFIX
from runs import Found

KEY_HEADER = "X-Idempotency-Key"
# What Django's own file backend writes after each message.
END_MARK = b"\n" + b"-" * 79 + b"\n"


def find_sent(idempotency_key: str, args: dict[str, Any]) -> Found | None:  # Any: a tool's arguments
    """Look for the message in the mail folder; SMTP cannot be asked.

    `args` are the arguments of send_email. Returns Found with the Message-ID, or None if the message is not
    there. Raises LookupError where nobody but a person can tell: an SMTP server keeps no such record, and a
    message with this key but another text is not the one that was asked for.
    """
    folder = _mail_folder()
    if folder is None:
        raise LookupError(
            f"The mail server cannot be asked whether it took the message with {KEY_HEADER} "
            f"{idempotency_key}. Look in its log or ask {args.get('to')}, then settle the entry."
        )
    seen = False
    for message in _messages(folder, idempotency_key):
        if _lines(message.get_content()) == _lines(args["body"]):
            return Found(str(message["Message-ID"]))
        seen = True
    if seen:
        raise LookupError(
            f"{folder} holds a message with {KEY_HEADER} {idempotency_key}, but with another text. "
            f"Look at it, then settle the entry."
        )
    return None


def _mail_folder() -> Path | None:
    connection = get_connection()
    return Path(connection.file_path) if isinstance(connection, FileBackend) else None


def _messages(folder: Path, idempotency_key: str) -> Iterator[EmailMessage]:
    """The whole messages in the folder that have this key, in every way in which they can be read."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_file():
            continue
        written = path.read_bytes()
        for reading in [written] if path.suffix == SUFFIX else _between_marks(written):
            message: EmailMessage = email.message_from_bytes(reading, policy=email.policy.default)
            if _one_word(message[KEY_HEADER]) == _one_word(idempotency_key):
                yield message


def _between_marks(written: bytes) -> Iterator[bytes]:
    """What may be one message in a file of Django's own backend.

    What follows the last mark was cut off by a crash while it was written: that message was not sent. The file may
    hold several messages, and a text may hold a line like the mark: so each reading begins at the file's start or
    after a mark, and ends at any mark behind that.
    """
    parts = written.split(END_MARK)[:-1]
    for start, part in enumerate(parts):
        if f"\n{KEY_HEADER}:".encode() not in part:
            continue
        for end in range(start, len(parts)):
            yield END_MARK.join(parts[start : end + 1])


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def _one_word(text: str | None) -> str:
    """Without white space, for a long header is folded and comes back with more of it."""
    return "".join((text or "").split())
