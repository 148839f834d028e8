"""Questions to people: one, or several at once beside calls."""

from __future__ import annotations

from functools import partial
from typing import Any  # an answer's payload is any JSON

from runs.core import codec
from runs.core.ask import Answer, Ask
from runs.core.asking import Asking
from runs.core.commands import Work
from runs.core.errors import Expired, Rejected
from runs.core.ledger import DONE, Entry, question
from runs.core.outcomes import Stop, Waits
from runs.core.rules import Judgement


class People(Asking):
    """The part of a node's questions that people answer."""

    def interrupt(self, ask: Ask) -> Work:
        name = self.keys.named(ask.name or self.ledger.node, "interrupt")
        yield from self.before_more()
        return self._answer((yield from self._open_interrupt(ask, name)))

    def _answer(self, asked: Entry) -> Answer:
        """What people said. Raises Expired, and Stop while it cannot be taken."""
        if not (asked.status == DONE and asked.taken):
            raise Stop(Waits((asked.key,)))
        return answer_of(asked)

    def _open_interrupt(self, ask: Ask, name: str) -> Work:
        key = self.current(name)
        asked = self.ledger.entries.get(key)
        self.asked.add(key)
        if asked is None:
            judged = yield from self.judge(ask, codec.dumps(ask.payload))
            asked = question(ask, key, ask.payload, judged=judged)
            yield partial(self.ledger.ask, asked, ask.due)
        elif ask.name is not None:
            judged = Judgement.of(codec.loads(asked.request))  # rules may look at the world; the record wins
            anew = question(ask, key, ask.payload, judged=judged)
            if asked.request_digest != anew.request_digest:
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
