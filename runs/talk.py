"""What an agent and its model said, what that took, and what it may take."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any  # what an agent finishes with is the author's

from pydantic import BaseModel

from runs.core.ask import Ask
from runs.language_model import Message, Reply


class Talk(BaseModel):
    """A field of the state; it grows by what is said, one message after the other."""

    messages: list[Message] = []
    turns: int = 0
    mistakes: int = 0  # replies in a row that could not be used
    tokens: int = 0
    usd: Decimal = Decimal(0)
    more_tokens: int = 0  # that people allowed beyond the budget
    more_usd: Decimal = Decimal(0)
    model: str = ""  # what replied last, as it names itself
    final: Any = None  # a text, or the agent's `output`; None until it finished

    def say(self, text: str) -> None:
        """Go on with a further message of the user, also after the agent finished."""
        self.messages.append({"role": "user", "content": text})
        self.final = None

    def take(self, reply: Reply) -> None:
        self.model, self.tokens, self.usd = reply.model, self.tokens + reply.tokens, self.usd + reply.usd


@dataclass(frozen=True)
class Budget:
    """What a talk may take. It is looked at before each turn, so one reply may pass it; None is no limit.

    With `ask`, people are asked to allow as much again, or what they write; without, the agent stops.
    """

    tokens: int | None = None
    usd: Decimal | str | None = None
    ask: Ask | None = None

    def passed(self, talk: Talk) -> str:
        """Which limit has been reached, in words; "" while none is."""
        if self.tokens is not None and talk.tokens >= self.tokens + talk.more_tokens:
            return f"{talk.tokens:,} of {self.tokens + talk.more_tokens:,} tokens are used"
        if self.usd is not None and talk.usd >= Decimal(self.usd) + talk.more_usd:
            return f"{talk.usd:f} of {Decimal(self.usd) + talk.more_usd:f} USD are used"
        return ""

    @property
    def as_much_again(self) -> dict[str, Any]:
        return {"tokens": self.tokens or 0, "usd": float(self.usd or 0)}
