"""A provider of identities that runs, and a browser that goes between it and this site."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from html import unescape
from urllib.parse import urlsplit

import httpx
import pytest
from django.test import Client

from tests.conftest import ROOT
from tests.durableweb.sign_in import provider as at_provider

PATIENCE_SECONDS = 120
CALLBACK = "http://testserver/login/from/sso/"
GROUPS = [("approvers", "pm"), ("platform", "ops")]


@pytest.fixture(scope="session")
def provider(tmp_path_factory):
    """(address, folder) of a provider in a process of its own."""
    folder = tmp_path_factory.mktemp("provider")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.durableweb.sign_in.provider", str(folder), str(port), CALLBACK]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (folder / "ready").exists():
            assert process.poll() is None, "the provider ended before it answered"
            assert time.monotonic() < end, "the provider does not answer"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", folder
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def with_provider(settings, provider):
    """This site trusts that provider."""
    address, folder = provider
    settings.OIDC = settings.OIDC | {
        "url": address,
        "name": "Example",
        "client": at_provider.CLIENT,
        "secret": at_provider.SECRET,
        "groups": GROUPS,
    }
    app = {
        "provider_id": "sso",
        "name": "Example",
        "client_id": at_provider.CLIENT,
        "secret": at_provider.SECRET,
        "settings": {"server_url": address, "oauth_pkce_enabled": True},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    yield folder
    (folder / "forgets").unlink(missing_ok=True)


class Browser:
    """Keeps the cookies of both: `here` is Django's client, `there` a real HTTP client."""

    def __init__(self, address: str) -> None:
        self.here = Client()
        self.there = httpx.Client(base_url=address, follow_redirects=False, timeout=PATIENCE_SECONDS)
        self.address = address

    def sign_in(self, name: str, **posted: str):
        """Press the button of the sign-in page, sign in at the provider, come back; the answer here."""
        return self.come_back(self.here.post("/login/at/sso/?process=login", posted), name)

    def come_back(self, onward, name: str):
        """From a page that leads to the provider, through what it asks, to the answer here."""
        assert onward.status_code == 200, onward.content
        url = unescape(
            re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', onward.content.decode())[1]
        )
        assert url.startswith(self.address)
        for _hop in range(8):
            answer = self.there.get(url)
            if answer.status_code == 200 and "csrfmiddlewaretoken" in answer.text:
                answer = self._fill_in(url, answer.text, name)
            url = str(httpx.URL(url).join(answer.headers["Location"]))
            if url.startswith("http://testserver/"):
                parts = urlsplit(url)
                return self.here.get(f"{parts.path}?{parts.query}")
        raise AssertionError(f"the provider leads nowhere: {url}")

    def _fill_in(self, url: str, page: str, name: str) -> httpx.Response:
        hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
        entries = {key: unescape(value) for key, value in hidden}
        return self.there.post(
            url, data=entries | {"login": name, "password": name}, headers={"Referer": url}
        )


@pytest.fixture
def browser(provider):
    return Browser(provider[0])
