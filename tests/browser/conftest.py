"""A real server, a real browser, and people who are signed in to it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import ROOT
from tests.places import BROWSERS

playwright_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
WAIT = 30_000  # milliseconds, for what happens at once, on a slow machine
SOON = 25_000  # for what comes over the socket: two seconds, with room; a page without one reads after 30 s


@pytest.fixture(scope="package")
def chromium() -> Iterator[playwright_api.Browser]:
    playwright_api.expect.set_options(timeout=WAIT)
    with pytest.MonkeyPatch.context() as patch, playwright_api.sync_playwright() as playwright:
        patch.setenv(
            "DJANGO_ALLOW_ASYNC_UNSAFE", "1"
        )  # playwright's loop runs in this thread until the package ends
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        except playwright_api.Error as error:
            pytest.skip(f"no Chromium that starts: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def address(django_db_setup: None) -> Iterator[str]:
    """Where the site runs, over ASGI and in a process of its own, on the rows of the tests."""
    with served(dict(os.environ)) as found:
        yield found


@contextmanager
def served(environment: dict[str, str]) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "tests.browser.site:application", "--port", str(port)]
    server = subprocess.Popen([*command, "--log-level", "warning"], cwd=ROOT, env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{port}/login/", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert server.poll() is None, "the server ended before it answered"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.05)


@pytest.fixture
def open_as(
    chromium: playwright_api.Browser, address: str, transactional_db: None
) -> Iterator[Callable[..., playwright_api.Page]]:
    """open_as(ada, "/", width=360) opens a page in a browser of its own; what it logs as an error fails the test."""
    contexts, said = [], []

    def opened(
        person, path: str = "/", *, width: int = 1280, height: int = 900, **options
    ) -> playwright_api.Page:
        touch = width < 720
        context = chromium.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", has_touch=touch, **options
        )
        contexts.append(context)
        context.set_default_timeout(WAIT)
        context.add_cookies([{"name": "sessionid", "value": _session_of(person), "url": address}])
        page = context.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.goto(address + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    # A refused decision is an answer like any other, but browsers log its status.
    assert [text for text in said if not re.search(r"status of (403|404|409|422)", text)] == []


def arrived(page: playwright_api.Page, heading: str) -> None:
    """The page of that heading is there, and its scripts have run: from now on its keys act."""
    playwright_api.expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    page.wait_for_load_state()


def _session_of(person) -> str:
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return session.session_key


@pytest.fixture(autouse=True)
def committed(transactional_db: None) -> None:
    """The server is another process; what it and the test have written is deleted afterwards."""
