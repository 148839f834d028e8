"""One question to a language model under way: where it goes, how long it may take, what has come back so far.

Apart from `runs.model_endpoint`, so that httpx is loaded by the process that asks, and not by each that knows a graph.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any  # whatever the endpoint wrote

import httpx

from runs.core.errors import Permanent, Transient
from runs.language_model import Reply, Wish
from runs.model_stream import SPENT, Stream
from runs.model_usage import Prices, usage_of

ANSWER_BYTES = 4_000_000
CONNECT_SECONDS = 5.0
TRY_AGAIN = {408, 409, 425, 429}


def answered(
    question: Question,
    request: dict[str, Any],
    usd_per_million: Prices,
    show: Callable[[str], None] | None,
) -> Reply:
    with (
        question.understood(),
        httpx.Client(timeout=question.limits, auth=question.auth, verify=_certificates()) as client,
        client.stream("POST", question.address, **_body(request)) as answer,
    ):
        question.begins(answer, show)
        for chunk in answer.iter_bytes():
            question.take(chunk)
    return question.reply(answer, request, usd_per_million)


async def aanswered(
    question: Question,
    request: dict[str, Any],
    usd_per_million: Prices,
    show: Callable[[str], None] | None,
) -> Reply:
    """`answered` on an event loop; it may be cancelled."""
    with question.understood():
        async with (
            httpx.AsyncClient(timeout=question.limits, auth=question.auth, verify=_certificates()) as client,
            client.stream("POST", question.address, **_body(request)) as answer,
        ):
            question.begins(answer, show)
            async for chunk in answer.aiter_bytes():
                question.take(chunk)
    return question.reply(answer, request, usd_per_million)


def _body(request: dict[str, Any]) -> dict[str, Any]:
    """In ASCII, so that half of a surrogate pair, of a text that was cut in the middle, goes out as it was recorded."""
    return {"content": json.dumps(request, allow_nan=False), "headers": {"Content-Type": "application/json"}}


def _base(url: str, setting: str) -> httpx.URL:
    """The address without user name and password: httpx writes addresses into the log."""
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as wrong:
        raise Permanent(f"{setting} is no address of a model: {wrong}") from wrong
    if base.scheme not in ("http", "https") or not base.host:
        raise Permanent(f"{setting} is no address of a model: it begins with neither http:// nor https://.")
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


class Question:
    """`setting` is for errors: it names what gave the address."""

    def __init__(self, url: str, api_key: str | None, timeout: float, setting: str) -> None:
        base = _base(url, setting)
        self.place = (
            f"{base.scheme}://{base.netloc.decode()}{base.path}"  # without user name, password and query
        )
        self.address = base.copy_with(path=f"{base.path.rstrip('/')}/chat/completions")
        self.auth, self.timeout = _auth(url, api_key), timeout
        self.limits = httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout))
        self.deadline, self.body, self.size = time.monotonic() + timeout, bytearray(), 0
        self.stream: Stream | None = None

    def begins(self, answer: httpx.Response, show: Callable[[str], None] | None) -> None:
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if answer.status_code == 200 and kind == "text/event-stream":
            self.stream = Stream(self.place, show or _nobody)

    def take(self, chunk: bytes) -> None:
        """A body that drips or never ends is given up."""
        self.size += len(chunk)
        if self.stream is not None:
            self.stream.feed(chunk)
        else:
            self.body += chunk
        if self.size > ANSWER_BYTES:
            raise Permanent(f"The model at {self.place} answered with more than {ANSWER_BYTES:,} bytes.")
        if time.monotonic() > self.deadline:
            raise Transient(
                f"The model at {self.place} had not finished its answer after {self.timeout:g} s."
            )

    @contextmanager
    def understood(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as late:
            raise Transient(f"The model at {self.place} did not answer within {self.timeout:g} s.") from late
        except httpx.HTTPError as broken:
            raise Transient(
                f"The model at {self.place} cannot be reached: {broken or type(broken).__name__}"
            ) from broken

    def reply(self, answer: httpx.Response, request: dict[str, Any], usd_per_million: Prices) -> Reply:
        if answer.status_code != 200:
            raise _refusal(self.place, answer.status_code, answer.headers, bytes(self.body))
        if self.stream is not None:
            return _read(self.place, request, self.stream.answer(), usd_per_million)
        return _reply(self.place, request, bytes(self.body), usd_per_million)


def _nobody(text: str) -> None:
    """Who looks on while it comes."""


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes tens of milliseconds, and hundreds of runs ask at once in one thread."""
    return httpx.create_ssl_context()


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


def _reply(place: str, request: dict[str, Any], body: bytes, usd_per_million: Prices) -> Reply:
    try:
        return _read(place, request, json.loads(body), usd_per_million)
    except (ValueError, LookupError, TypeError, AttributeError) as broken:
        start = body[:120].decode(errors="replace")
        raise Transient(f"The model at {place} sent an answer that cannot be read: {start!r}") from broken


def _read(place: str, request: dict[str, Any], answer: dict[str, Any], usd_per_million: Prices) -> Reply:
    choice = answer["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    text, refused = message.get("content"), message.get("refusal")
    wishes = [_wish(number, call) for number, call in enumerate(message.get("tool_calls") or (), 1)]
    if refused or finish == "content_filter":
        raise Permanent(f"The model at {place} refused: {refused or 'its content filter stopped it'}")
    text = text if isinstance(text, str) else ""
    if not text.strip() and not wishes:
        raise Transient(f"The model at {place} sent an empty answer.")
    took = usage_of(answer.get("usage"), request, text, wishes, usd_per_million)
    return Reply(
        text=text,
        wishes=wishes,
        model=str(answer.get("model") or request["model"]),
        tokens=took.tokens,
        usd=took.usd,
        estimated=took.estimated,
        priced=took.priced,
        cut=finish == "length",
    )


def _wish(number: int, call: dict[str, Any]) -> Wish:
    wanted = call["function"]
    arguments = wanted.get("arguments") or "{}"  # some servers send an object in place of its text
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Wish(id=str(call.get("id") or f"call_{number}"), name=str(wanted["name"]), arguments=text)
