"""The mail provider of a machine without one: a folder with one file a message, whole or absent."""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from django.core.mail import EmailMessage
from django.core.mail.backends.filebased import EmailBackend as FileBackend

SUFFIX = ".eml"  # as mail programs call a file that holds one message


class EmailBackend(FileBackend):
    """Django's file backend (EMAIL_FILE_PATH), made safe against a crash half-way.

    Django names a file after the second and an address in memory: two messages of one second can share a file,
    and a kill while writing leaves half a message. Here a message is written under a hidden name, forced to
    disk and only then given a visible name of its own, so that what can be seen in the folder was sent.
    """

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        try:
            for message in email_messages:
                self._put(message.message().as_bytes())
        except OSError:
            if not self.fail_silently:
                raise
            return 0
        return len(email_messages)

    def _put(self, written: bytes) -> None:
        folder = Path(self.file_path)
        name = f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex}{SUFFIX}"
        hidden = folder / f".{name}.partial"
        try:
            with hidden.open("xb") as file:
                file.write(written)
                file.flush()
                os.fsync(file.fileno())
            hidden.rename(folder / name)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
