"""Questions to people: one, or several at once beside calls."""

from __future__ import annotations

from functools import partial
from typing import Any  # an answer's payload is any JSON

from runs.core import codec
from runs.core.ask import Answer, Ask
from runs.core.asking import Asking
from runs.core.commands import Work
from runs.core.errors import Expired, Rejected
from runs.core.ledger import CANCELLED, DONE, Entry, question
from runs.core.outcomes import Stop, Waits


class People(Asking):
    """The part of a node's questions that people answer."""

    def interrupt(self, ask: Ask) -> Work:
        name = self.keys.named(ask.name or self.ledger.node, "interrupt")
        asked = yield from self._open_interrupt(ask, name)
        if not (asked.status == DONE and asked.taken):
            raise Stop(Waits((asked.key,)))
        return answer_of(asked)

    def _open_interrupt(self, ask: Ask, name: str) -> Work:
        key, number = name, 1
        while (asked := self.ledger.entries.get(key)) is not None and asked.status == CANCELLED:
            number += 1
            key = f"{name}~{number}"
        self.asked.add(key)
        if asked is None:
            asked = question(ask, key, ask.payload)
            yield partial(self.ledger.ask, asked, ask.due)
        elif (
            ask.name is not None
            and asked.request_digest != (anew := question(ask, key, ask.payload)).request_digest
        ):
            yield partial(self.ledger.remark, asked, "other_request", anew.request)
        return asked


def refuse(answer: dict[str, Any], asked: str) -> None:
    """Raise what the author catches when people, or the deadline, said no."""
    if answer["outcome"] == "expired":
        raise Expired(asked)
    if answer["verdict"] == "reject":
        raise Rejected(answer["reason"], answer["by"])


def answer_of(asked: Entry) -> Answer:
    answer = asked.value
    if answer["outcome"] == "expired":
        raise Expired(codec.loads(asked.request)["question"])
    return Answer(answer["verdict"], answer["payload"], answer["reason"], answer["by"], answer["outcome"])
