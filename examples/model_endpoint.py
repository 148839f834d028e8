"""Ask an OpenAI-compatible endpoint over HTTP, and sort what can go wrong by what helps."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import httpx

from runs import Permanent, Transient

ANSWER_BYTES = 4_000_000
CONNECT_SECONDS = 5.0
TRY_AGAIN = {408, 409, 425, 429}
SPENT = "insufficient_quota"  # the code of a 429 that no waiting cures


class Reply(NamedTuple):
    text: str
    model: str
    tokens: int


def ask_model(
    url: str, model: str, messages: list[dict[str, str]], api_key: str | None, timeout: float
) -> Reply:
    """One chat completion; `url` is the base, such as http://127.0.0.1:9000/v1; `timeout` in seconds.

    A question changes nothing at the provider, so whatever may pass is Transient: silence, a broken
    connection, 429 and 503 (with their Retry-After), other 5xx, an answer that cannot be read. Permanent: a refusal.
    """
    base = _base(url)
    place = f"{base.scheme}://{base.netloc.decode()}{base.path}"  # without user name, password and query
    request = {"model": model, "messages": messages}
    try:
        status, answered, body = _post(base, request, _auth(url, api_key), timeout, place)
    except httpx.TimeoutException as late:
        raise Transient(f"The model at {place} did not answer within {timeout:g} s.") from late
    except httpx.HTTPError as broken:
        raise Transient(
            f"The model at {place} cannot be reached: {broken or type(broken).__name__}"
        ) from broken
    if status != 200:
        raise _refusal(place, status, answered, body)
    return _reply(place, model, body)


def _base(url: str) -> httpx.URL:
    """The address without user name and password: httpx writes addresses into the log."""
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as wrong:
        raise Permanent(f"BRIEF_MODEL_URL is no address of a model: {wrong}") from wrong
    if base.scheme not in ("http", "https") or not base.host:
        raise Permanent(
            "BRIEF_MODEL_URL is no address of a model: it begins with neither http:// nor https://."
        )
    return base.copy_with(userinfo=b"")


def _auth(url: str, api_key: str | None) -> httpx.Auth | None:
    """The key if there is one, else the user name and password of the address."""
    if api_key:
        return _Bearer(api_key)
    given = httpx.URL(url)
    return httpx.BasicAuth(given.username, given.password) if given.userinfo else None


class _Bearer(httpx.Auth):
    def __init__(self, api_key: str) -> None:
        self.header = f"Bearer {api_key}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = self.header
        yield request


def _post(
    base: httpx.URL, request: dict[str, object], auth: httpx.Auth | None, timeout: float, place: str
) -> tuple[int, httpx.Headers, bytes]:
    """Status, headers and body; a body that drips or never ends is given up."""
    deadline = time.monotonic() + timeout
    limits = httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout))
    url = base.copy_with(path=f"{base.path.rstrip('/')}/chat/completions")
    body = bytearray()
    with (
        httpx.Client(timeout=limits, auth=auth) as client,
        client.stream("POST", url, json=request) as answer,
    ):
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > ANSWER_BYTES:
                raise Permanent(f"The model at {place} answered with more than {ANSWER_BYTES:,} bytes.")
            if time.monotonic() > deadline:
                raise Transient(f"The model at {place} had not finished its answer after {timeout:g} s.")
        return answer.status_code, answer.headers, bytes(body)


def _refusal(place: str, status: int, headers: Mapping[str, str], body: bytes) -> Transient | Permanent:
    code, words = _said(body)
    told = f"The model at {place} answered {status}: {words}"
    if status >= 500 or (status in TRY_AGAIN and code != SPENT):
        return Transient(told, retry_after=_retry_after(headers))
    return Permanent(told)


def _said(body: bytes) -> tuple[str | None, str]:
    """The code and words of an error, in the form that most providers share, else the start of the text."""
    try:
        error = json.loads(body)["error"]
        return (error.get("code"), str(error["message"])) if isinstance(error, dict) else (None, str(error))
    except (ValueError, LookupError, TypeError):
        return None, body[:300].decode(errors="replace").strip() or "(no text)"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from Retry-After in either of its forms (RFC 9110, 10.2.3): seconds or a date."""
    written = headers.get("Retry-After", "").strip()
    if written.isdecimal():
        return float(written)
    try:
        when = parsedate_to_datetime(written)
    except (ValueError, TypeError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def _reply(place: str, model: str, body: bytes) -> Reply:
    try:
        answer: dict[str, Any] = json.loads(body)  # Any: whatever the endpoint wrote
        choice = answer["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        text, refused = message.get("content"), message.get("refusal")
    except (ValueError, LookupError, TypeError, AttributeError) as broken:
        start = body[:120].decode(errors="replace")
        raise Transient(f"The model at {place} sent an answer that cannot be read: {start!r}") from broken
    if refused or finish == "content_filter":
        raise Permanent(
            f"The model at {place} refused to draft: {refused or 'its content filter stopped it'}"
        )
    if not isinstance(text, str) or not text.strip():
        raise Transient(f"The model at {place} sent an empty answer.")
    return Reply(text, str(answer.get("model") or model), _tokens(answer.get("usage")))


def _tokens(usage: object) -> int:
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and total >= 0 else 0
