"""A chat completion in pieces (server-sent events): each is shown as it comes, and the whole is one answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any  # whatever the endpoint wrote

from runs.core.errors import Permanent, Transient

SPENT = "insufficient_quota"  # the code of a refusal that no waiting cures
DONE = b"[DONE]"
SHOWN_BYTES = 120  # of what cannot be read

Piece = dict[str, Any]


class Stream:
    """Fed with bytes as they come; `answer()` is what the endpoint would have sent in one piece."""

    def __init__(self, place: str, show: Callable[[str], None]) -> None:
        self.place, self.show = place, show
        self.rest, self.lines = b"", []
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[int, Piece] = {}
        self.finish: str | None = None
        self.model: str | None = None
        self.usage: Piece | None = None
        self.done = False

    def feed(self, chunk: bytes) -> None:
        """Raises Transient for a piece that cannot be read, and what the endpoint says in place of one."""
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        for line in whole:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self.lines.append(line[5:].removeprefix(b" "))
            elif not line and self.lines:
                event, self.lines = b"\n".join(self.lines), []
                self._take(event)

    def answer(self) -> Piece:
        """Raises Transient if it broke off."""
        if not self.done and self.finish is None:
            raise Transient(f"The model at {self.place} broke off in the middle of its answer.")
        message = {"content": "".join(self.texts), "refusal": "".join(self.refusals)}
        message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        choice = {"message": message, "finish_reason": self.finish}
        return {"choices": [choice], "model": self.model, "usage": self.usage}

    def _take(self, event: bytes) -> None:
        if event.strip() == DONE:
            self.done = True
            return
        try:
            piece = json.loads(event)
            if (error := piece.get("error")) is not None:
                raise self._broken(error)
            self.model, self.usage = piece.get("model") or self.model, piece.get("usage") or self.usage
            for choice in piece.get("choices") or ():
                if choice.get("index", 0) == 0:  # one answer is asked for
                    self.finish = choice.get("finish_reason") or self.finish
                    self._add(choice.get("delta") or {})
        except (ValueError, LookupError, TypeError, AttributeError) as broken:
            start = event[:SHOWN_BYTES].decode(errors="replace")
            raise Transient(
                f"The model at {self.place} sent a piece that cannot be read: {start!r}"
            ) from broken

    def _add(self, delta: Piece) -> None:
        if isinstance(refused := delta.get("refusal"), str):
            self.refusals.append(refused)
        for call in delta.get("tool_calls") or ():
            self._add_to_call(call)
        if isinstance(text := delta.get("content"), str) and text:
            self.texts.append(text)
            self.show(text)

    def _add_to_call(self, more: Piece) -> None:
        wanted = more.get("function") or {}
        index = more.get("index")
        call = self.calls.setdefault(
            len(self.calls) if index is None else int(index),
            {"id": None, "function": {"name": "", "arguments": ""}},
        )
        call["id"] = more.get("id") or call["id"]
        arguments = wanted.get("arguments") or ""  # some servers send an object in place of its text
        call["function"]["name"] += wanted.get("name") or ""
        call["function"]["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def _broken(self, error: object) -> Transient | Permanent:
        code, words = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        told = f"The model at {self.place} broke off: {words}"
        return Permanent(told) if code == SPENT else Transient(told)
