"""What a language model is to an agent: messages and tools go in, one reply comes out.

Messages have the form of the chat completions API: dicts with role system, user, assistant or tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Protocol  # messages and arguments are any JSON

from pydantic import BaseModel

from runs.core.codec import storable
from runs.core.errors import Permanent
from runs.core.retry import Retry

Message = dict[str, Any]
SCRIPTED = "a script, not a language model"


@storable
class Wish(BaseModel):
    """A call that a model wants: `arguments` as it wrote them, JSON if it is well behaved."""

    id: str
    name: str
    arguments: str


@storable
class Reply(BaseModel):
    """What a model said, and what that took; `cut` where it ran out of room before its end.

    `estimated`: the tokens were not told, and are estimated from what was sent and came. `priced`: `usd` is known.
    """

    text: str = ""
    wishes: list[Wish] = []
    model: str = ""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    cut: bool = False
    estimated: bool = False
    priced: bool = True


class LanguageModel(Protocol):
    """Anything that replies. `secret` names the secret that holds its key, "" for none; `limit` is for one reply.

    One that also has `areply`, the same as a coroutine, is awaited by agents in async nodes and keeps no thread. One
    whose reply takes `show` besides gives that function each piece of its text as it comes. One with a `rate` is asked
    no more often than that, by all workers together.
    """

    name: str
    secret: str
    limit: timedelta
    retry: Retry

    def reply(
        self, messages: Sequence[Message], tools: Sequence[Message], api_key: str | None, timeout: float
    ) -> Reply: ...


Said = str | tuple[str, Any] | list[tuple[str, Any]] | Reply


class Scripted:
    """Replies that were written beforehand, for tests and demos; each of them says so.

    The n-th reply of a talk is the n-th of the script: a text, a call as (tool, arguments), a list of calls, a Reply,
    or a function of the messages so far that returns one of these. So it says the same in every process.
    """

    name = SCRIPTED
    secret = ""
    limit = timedelta(seconds=10)
    retry = Retry(attempts=1)

    def __init__(self, *script: Said | Callable[[Sequence[Message]], Said]) -> None:
        self.script = script

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Message],
        api_key: str | None,
        timeout: float,
        show: Callable[[str], None] | None = None,
    ) -> Reply:
        """With `show`, the text is shown word by word."""
        number = sum(message["role"] == "assistant" for message in messages)
        if number >= len(self.script):
            raise Permanent(f"The script has {len(self.script)} replies, and was asked for one more.")
        line = self.script[number]
        said = line(messages) if callable(line) else line
        match said:
            case str():
                said = Reply(text=said)
            case tuple():
                said = Reply(wishes=[_wish(number, 1, said)])
            case list():
                said = Reply(wishes=[_wish(number, place, call) for place, call in enumerate(said, 1)])
        for word in re.findall(r"\s*\S+|\s+$", said.text) if show is not None else ():
            show(word)
        return said.model_copy(update={"model": SCRIPTED})


def _wish(number: int, place: int, call: tuple[str, Any]) -> Wish:
    name, arguments = call
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Wish(id=f"call_{number + 1}_{place}", name=name, arguments=text)
