"""A model's next reply, asked for once: a call in the ledger, with the reply and the digest of what was said before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any  # what a verb of `run` returns: in an async node something to await

from runs.core import codec
from runs.core.context import AsyncRun, Run
from runs.core.rate import LONGEST_NAME, Rate
from runs.core.tool import tool
from runs.language_model import LanguageModel, Message, Reply


def next_reply(
    run: Run,
    model: LanguageModel,
    messages: list[Message],
    tools: list[Message],
    *,
    key: str,
    agent: str,
    turn: int,
) -> Any:
    """The ledger keeps the reply, and of the messages their digest: they are in the state already."""

    def ask_model(
        agent: str,
        turn: int,
        model_name: str,
        digest: str,
        api_key: str | None = None,
        *,
        timeout: float,
        show_text: Callable[[str], None],
    ) -> Reply:
        """The language model's next reply; `digest` is that of the messages before it."""
        reply = model.areply if in_loop else model.reply
        more = {"show": show_text} if _streams(model, reply) else {}
        return reply(messages, tools, api_key, timeout, **more)  # in the loop it is one to await

    in_loop = isinstance(run, AsyncRun) and hasattr(model, "areply")
    asked = _awaited(ask_model) if in_loop else ask_model
    return run.call(
        tool(limit=model.limit, retry=model.retry, rate=_rate_of(model))(asked),
        key=key,
        agent=agent,
        turn=turn,
        model_name=model.name,
        digest=codec.digest(codec.dumps(messages)),
        api_key=run.secret(model.secret) if model.secret else None,
    )


def _streams(model: LanguageModel, reply: Callable[..., Any]) -> bool:
    return getattr(model, "streams", True) and "show" in signature(reply).parameters


def _rate_of(model: LanguageModel) -> Rate | None:
    """Agents that ask one model share its rate, unless that has a name of its own."""
    given = getattr(model, "rate", None)
    rate = Rate(given) if isinstance(given, str) else given
    return rate if rate is None or rate.name else replace(rate, name=f"model {model.name}"[:LONGEST_NAME])


def _awaited(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A tool's function that returns something to await, as one that is awaited."""

    @wraps(ask)
    async def ask_model(*positional: Any, **arguments: Any) -> Any:
        return await ask(*positional, **arguments)

    return ask_model
