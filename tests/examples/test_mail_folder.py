"""The folder in which a message is whole or absent, and what is found in it."""

from __future__ import annotations

import email
import email.policy
import errno
import os
from pathlib import Path

import pytest
from django.core.mail import EmailMessage, get_connection

from examples.mail import message_id, send_email
from examples.mail_lookup import END_MARK, find_sent
from runs import Ambiguous, Found

KEY = "email:01890000-0000-7000-8000-000000000001:brief"
BODY = "Grüße.\n\nA line like the mark:\n" + "-" * 79 + "\nand more.\n"
ARGS = {"to": "pm@example.com", "subject": "Brief", "body": BODY}
OURS = "examples.mail_folder.EmailBackend"
DJANGOS = "django.core.mail.backends.filebased.EmailBackend"


@pytest.fixture(params=[OURS, DJANGOS])
def folder(request, settings, tmp_path) -> Path:
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = request.param, str(tmp_path / "mail")
    return tmp_path / "mail"


@pytest.fixture
def djangos_folder(settings, tmp_path) -> Path:
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = DJANGOS, str(tmp_path / "mail")
    return tmp_path / "mail"


@pytest.fixture
def our_folder(settings, tmp_path) -> Path:
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = OURS, str(tmp_path / "mail")
    return tmp_path / "mail"


def send(key=KEY, **changed: str) -> str:
    return send_email.fn(**{**ARGS, **changed}, idempotency_key=key)


def test_a_message_is_one_file(our_folder):
    """Django's own backend puts two messages of one second into one file when memory is used again."""
    send()
    send(key="another", subject="Second")

    subjects = {
        email.message_from_bytes(path.read_bytes(), policy=email.policy.default)["Subject"]
        for path in our_folder.iterdir()
    }
    assert sorted(path.suffix for path in our_folder.iterdir()) == [".eml", ".eml"]
    assert subjects == {"Brief", "Second"}


def test_a_sent_message_is_found_by_its_key(folder):
    sent = send()

    assert find_sent(KEY, ARGS) == Found(sent)
    assert find_sent("another", ARGS) is None


@pytest.mark.parametrize("body", ["x", "x\r\ny\r\n", "  x  \n\n", "é" * 2000, "From here\n.\n"])
def test_any_text_is_recognised_in_the_folder(folder, body):
    send(body=body)

    assert find_sent(KEY, ARGS | {"body": body}) == Found(message_id(KEY))


@pytest.mark.parametrize("key", ["k" * 200, "schlüssel:ü", "with space: and, comma"])
def test_any_key_is_recognised_in_the_folder(folder, key):
    send(key=key)

    assert find_sent(key, ARGS) == Found(message_id(key))


def test_a_message_cut_off_at_any_byte_was_not_sent(djangos_folder):
    """A kill half-way in writing leaves part of a file under Django's own backend."""
    send()
    (path,) = djangos_folder.iterdir()
    whole = path.read_bytes()
    looks_whole = whole.index(END_MARK) + len(END_MARK)  # the text itself holds a line like the mark

    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        if end < looks_whole:
            assert find_sent(KEY, ARGS) is None, end
        else:
            with pytest.raises(LookupError, match="with another text"):  # a person looks; never sent twice
                find_sent(KEY, ARGS)
    path.write_bytes(whole)
    assert find_sent(KEY, ARGS) == Found(message_id(KEY))


def test_a_second_message_in_one_file_is_found_too(djangos_folder):
    """Django names files after the second and a memory address, so two processes can meet in one."""
    send(key="first")
    send()
    written = b"".join(path.read_bytes() for path in djangos_folder.iterdir())
    for path in djangos_folder.iterdir():
        path.unlink()
    (djangos_folder / "both.log").write_bytes(written)

    assert find_sent(KEY, ARGS) == Found(message_id(KEY))
    assert find_sent("first", ARGS) == Found(message_id("first"))


def test_the_same_key_with_another_text_is_for_a_person(folder):
    send(body="Something else.\n")

    with pytest.raises(LookupError, match="with another text"):
        find_sent(KEY, ARGS)


def test_mail_of_others_in_the_folder_does_not_disturb(folder):
    with_attachment = EmailMessage("Report", "See the file.", to=["ops@example.com"])
    with_attachment.attach("report.bin", b"\x00\xff", "application/octet-stream")
    get_connection().send_messages([with_attachment])
    (folder / "notes.txt").write_bytes(b"\xff no mail at all")
    (folder / "subfolder").mkdir()
    send()

    assert find_sent(KEY, ARGS) == Found(message_id(KEY))


def test_a_kill_while_a_message_is_written_leaves_nothing_to_be_seen(our_folder):
    our_folder.mkdir()
    child = os.fork()
    if child == 0:
        real_fsync = os.fsync
        os.fsync = lambda handle: (real_fsync(handle), os.kill(os.getpid(), 9))
        send()
        os._exit(0)
    _, status = os.waitpid(child, 0)

    assert os.WTERMSIG(status) == 9
    assert [path.name.startswith(".") for path in our_folder.iterdir()] == [True]
    assert find_sent(KEY, ARGS) is None
    send()
    assert find_sent(KEY, ARGS) == Found(message_id(KEY))


def test_a_full_disk_is_settled_by_looking(our_folder, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Ambiguous, match="No space left on device"):
        send()
    assert list(our_folder.iterdir()) == []
    assert find_sent(KEY, ARGS) is None


def test_mail_that_may_be_lost_in_silence_stays_silent(our_folder, monkeypatch):
    """Django's own notices are sent so."""
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    assert EmailMessage("Notice", "Text", to=["ops@example.com"]).send(fail_silently=True) == 0


def test_a_mail_server_cannot_be_asked(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with pytest.raises(LookupError, match=f"{KEY}. Look in its log or ask pm@example.com, then settle"):
        find_sent(KEY, ARGS)
