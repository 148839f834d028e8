"""A language model behind an OpenAI-compatible endpoint; what can go wrong is sorted by what helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any  # whatever the endpoint wrote

from runs.core.rate import Rate
from runs.core.retry import Retry
from runs.language_model import Message, Reply
from runs.model_usage import Prices

IN_PIECES = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class Endpoint:
    """`url` is the base, such as http://127.0.0.1:9000/v1; `secret` names the secret with its key, if it wants one.

    `usd_per_million` are the prices of tokens in and out, used where the endpoint tells no cost: ("0", "0") is free,
    and without them what it costs is not known. `more` goes into each
    request as it is, such as {"temperature": 0}. `streams`: a text is asked for in pieces where somebody may watch it
    come; an endpoint that sends it whole all the same is understood too.
    """

    url: str
    name: str
    secret: str = ""
    usd_per_million: Prices = None
    limit: timedelta = timedelta(seconds=60)
    retry: Retry = Retry(attempts=5)
    more: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = True
    rate: Rate | str | None = None

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Message],
        api_key: str | None,
        timeout: float,
        show: Callable[[str], None] | None = None,
    ) -> Reply:
        """One chat completion; see `ask_model`."""
        request = self._request(messages, tools, show is not None)
        return ask_model(self.url, request, api_key, timeout, self.usd_per_million, show=show)

    async def areply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Message],
        api_key: str | None,
        timeout: float,
        show: Callable[[str], None] | None = None,
    ) -> Reply:
        """The same for an async node: hundreds of runs wait for their replies in one thread."""
        request = self._request(messages, tools, show is not None)
        return await aask_model(self.url, request, api_key, timeout, self.usd_per_million, show=show)

    def _request(
        self, messages: Sequence[Message], tools: Sequence[Message], in_pieces: bool
    ) -> dict[str, Any]:
        request = {**self.more, "model": self.name, "messages": list(messages)}
        if in_pieces:
            request = {**IN_PIECES, **request}
        return request | {"tools": list(tools)} if tools else request


def ask_model(
    url: str,
    request: dict[str, Any],
    api_key: str | None,
    timeout: float,
    usd_per_million: Prices = None,
    setting: str = "The address of the endpoint",
    show: Callable[[str], None] | None = None,
) -> Reply:
    """One chat completion: `request` has at least model and messages; `timeout` in seconds; `setting` is for errors.

    `show` is given each piece of the text as it comes, if the request asks for a stream and the endpoint sends one.

    A question changes nothing at the provider, so whatever may pass is Transient: silence, a broken
    connection, 429 and 503 (with their Retry-After), other 5xx, an answer that cannot be read. Permanent: a refusal.
    """
    from runs.model_question import Question, answered  # which loads httpx

    return answered(Question(url, api_key, timeout, setting), request, usd_per_million, show)


async def aask_model(
    url: str,
    request: dict[str, Any],
    api_key: str | None,
    timeout: float,
    usd_per_million: Prices = None,
    setting: str = "The address of the endpoint",
    show: Callable[[str], None] | None = None,
) -> Reply:
    """`ask_model` on an event loop; it may be cancelled."""
    from runs.model_question import Question, aanswered

    return await aanswered(Question(url, api_key, timeout, setting), request, usd_per_million, show)
