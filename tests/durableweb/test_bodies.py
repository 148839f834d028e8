"""Bodies that are too large end before they are read whole, and what fits passes untouched."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.urls import reverse

from approvals.files import LARGEST, MOST_AT_ONCE
from durableweb import bodies
from durableweb.bodies import LimitedBodies, most

CHUNK = 65_536
COMMENTS = f"/approvals/{uuid4()}/comments/"


class Reading(ASGIHandler):
    """Django's own; it notes how many bytes it read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def create_request(self, scope: Any, body_file: Any) -> Any:
        self.read.append(len(body_file.read()))
        body_file.seek(0)
        return super().create_request(scope, body_file)


def post(
    path: str, chunks: int, length: int | str | None = None, **asked: str
) -> tuple[list[int], list[Any], int]:
    """What Django read, what was sent, and how many chunks were asked for, of a body in pieces of 64 KB."""
    headers = [(b"host", b"localhost"), (b"content-type", b"text/plain")]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in asked.items()]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    events = [
        {"type": "http.request", "body": b"x" * CHUNK, "more_body": left > 0} for left in range(chunks)[::-1]
    ]
    asked, sent, django = 0, [], Reading()

    async def receive() -> Any:
        nonlocal asked
        asked += 1
        return events[asked - 1] if asked <= len(events) else {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    asyncio.run(LimitedBodies(django)(scope, receive, send))
    return django.read, sent, asked


def statuses(sent: list[Any]) -> list[int]:
    return [event["status"] for event in sent if event["type"] == "http.response.start"]


@pytest.mark.parametrize("path", ["/login/", "/not/here/", COMMENTS])
def test_a_length_that_is_too_large_is_refused_unread(path):
    for length in (most(path) + 1, "9" * 5000):
        read, sent, asked = post(path, 1, length)
        assert (read, statuses(sent), asked) == ([], [413], 0)
        assert "at most" in sent[1]["body"].decode() and not sent[1].get("more_body")


def test_a_browser_gets_a_page_in_its_language_and_a_program_a_sentence():
    for asked, language in (({}, "en"), ({"accept_language": "de"}, "de"), ({"cookie": "language=de"}, "de")):
        sent = post("/login/", 1, most("/login/") + 1, accept="text/html,*/*", **asked)[1]
        start, page = dict(sent[0]["headers"]), sent[1]["body"].decode()
        assert start[b"content-type"].startswith(b"text/html") and f'<html lang="{language}"' in page
        assert b"default-src 'none'" in start[b"content-security-policy"] and "app.css" in page
    assert "<" not in post("/login/", 1, most("/login/") + 1, accept="*/*")[1][1]["body"].decode()


@pytest.mark.parametrize("length", [None, 10], ids=["in chunks", "with a length that is a lie"])
def test_a_body_that_grows_too_large_is_refused_where_it_does(length):
    fits = most("/login/") // CHUNK
    read, sent, asked = post("/login/", fits + 100, length)
    assert (read, statuses(sent), asked) == ([], [413], fits + 1)


@pytest.mark.django_db(transaction=True)
def test_what_fits_is_read_whole(monkeypatch):
    fits = most("/login/") // CHUNK
    assert post("/login/", fits)[0] == [fits * CHUNK]
    monkeypatch.setattr(bodies, "LARGEST", CHUNK)
    assert post(COMMENTS, fits + 4)[0] == [(fits + 4) * CHUNK], "files come with comments"


def test_only_comments_have_files():
    files = MOST_AT_ONCE * LARGEST
    assert most(reverse("approvals:comments", args=[uuid4()])) == most("/") + files
    assert most("/prefix" + COMMENTS) == most("/") + files
    for path in (COMMENTS + "more/", COMMENTS + "\n", f"/approvals/{uuid4()}/draft/", "/approvals/comments/"):
        assert most(path) == most("/")
