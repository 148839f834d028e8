"""What every kind of question shares: the ledger, the keys asked for so far, and where the execution stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # what a rule's reader makes of its word

from runs.core import codec, rules
from runs.core.ask import Ask
from runs.core.commands import Invoke, Work
from runs.core.keys import Keys, repeats
from runs.core.ledger import Ledger
from runs.core.outcomes import Stop
from runs.core.rules import Judgement, Rule


class Asking:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys = Keys()
        self.repeats = repeats(ledger.entries)
        self.asked: set[str] = set()
        self.stopped: Stop | None = None

    def checked(self, work: Work) -> Work:
        """A node that swallowed a Stop gets it again at its next question; the executor looks here at the end."""
        if self.stopped is not None:
            raise self.stopped
        try:
            return (yield from work)
        except Stop as stop:
            self.stopped = stop
            raise

    def judge(self, ask: Ask, text: str) -> Work:
        """What the author's rules say of a payload, given as its canonical text; each rule gets a copy of its own."""
        needs = []
        for number, stage in enumerate(ask.stages, 1):
            if stage.when is None or (yield from _ask_rule(stage.when, text, rules.needed)):
                needs.append(number)
        said = ""
        if ask.policy is not None:
            said = yield from _ask_rule(ask.policy, text, rules.objection)
        return Judgement(tuple(needs), said)


def _ask_rule(rule: Rule, text: str, read: Callable[[str, object], Any]) -> Work:
    return read(rule.__qualname__, (yield Invoke(rule, positional=(codec.loads(text),))))
