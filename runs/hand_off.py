"""Handing a talk over to another graph, as a tool of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # a child's input and result are the author's

from pydantic import BaseModel, Field
from pydantic_core import to_json

from runs.core.child import ChildEnd
from runs.core.graph import Graph
from runs.core.spending import Spent
from runs.talk import Talk


class Handed(BaseModel):
    request: str = Field(min_length=1, max_length=4_000, pattern=r"\S", description="What it is to do.")


@dataclass(frozen=True)
class HandOff:
    """Another graph as a tool: a child run takes the talk over, and what it answers is the tool's result.

    The graph's state has the fields `request`, which the model writes, `talk`, and `answer`. The talk begins with what
    was said so far, or without it (`said=False`), and with what was spent: the child's budget is for the whole talk,
    and what it spends or is allowed beyond it counts here afterwards. A child that fails is told as a failure, and what
    it and all below it have spent counts as well, also in the step that failed.
    """

    graph: Graph | str
    name: str
    description: str
    said: bool = True

    def input(self, talk: Talk, request: str) -> dict[str, Any]:
        before = _closed(talk.messages) if self.said else []
        messages = [*before, {"role": "user", "content": request}] if before else []
        kept = talk.model_dump(include={"tokens", "usd", "more_tokens", "more_usd"})
        return {"request": request, "talk": Talk(messages=messages, **kept)}

    def take(self, talk: Talk, end: ChildEnd) -> str:
        """What the model is told, with what the child spent taken over."""
        before = Spent(talk.tokens, talk.usd)
        came_to = end.result if end.completed else end.reached or {}
        if "talk" in came_to:
            theirs = Talk.model_validate(came_to["talk"])
            for name in ("tokens", "usd", "more_tokens", "more_usd"):
                setattr(talk, name, getattr(theirs, name))
        if end.spent is not None:  # of steps that were never committed no state tells
            all_of_it = before + end.spent
            talk.tokens, talk.usd = max(talk.tokens, all_of_it.tokens), max(talk.usd, all_of_it.usd)
        if not end.completed:
            return f"It failed: {end.error.partition(chr(10))[0] or end.status}"
        answer = end.result.get("answer")
        return answer if isinstance(answer, str) else to_json(answer).decode()


def _closed(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was said, without the instructions, and without calls that are not answered yet: no model takes such."""
    answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    return [
        message
        for message in messages
        if message["role"] != "system"
        and all(call["id"] in answered for call in message.get("tool_calls", ()))
    ]
