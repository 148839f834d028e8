"""What every kind of question shares: the ledger, the keys asked for so far, and where the execution stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # what a rule's reader makes of its word

from runs.core import codec, rules
from runs.core.ask import Ask
from runs.core.commands import Invoke, Work
from runs.core.errors import Permanent
from runs.core.keys import Keys, repeats
from runs.core.ledger import CHILD, FAILED, INTERRUPT, SIGNAL, Entry, Ledger
from runs.core.outcomes import Stop
from runs.core.rules import Judgement, Rule
from runs.core.tool import Tool


class Asking:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys = Keys()
        self.repeats = repeats(ledger.entries)
        self.asked: set[str] = set()
        self.tools: dict[str, Tool] = {}  # by name: those that it has called
        self.stood: list[str] = []  # failures from before a repair that it got again
        self.stopped: Stop | None = None
        self.over = False  # the node has returned, or raised
        self.under_way: set[object] = set()  # one for each question that is not answered yet

    def current(self, name: str) -> str:
        """The key under which the step asks it now: `~2` after what is over, then `~3`."""
        key, number = name, 1
        while (later := f"{name}~{number + 1}") in self.ledger.entries:
            key, number = later, number + 1
        there = self.ledger.entries.get(key)
        return f"{name}~{number + 1}" if there is not None and self.is_over(there) else key

    def is_over(self, entry: Entry) -> bool:
        """Whether it answers nobody any more, so that the node asks anew."""
        return entry.past and not (entry.aside and self.went_on_after(entry))

    def went_on_after(self, entry: Entry) -> bool:
        """Whether the node had caught this answer and gone another way, on which something stands that was done then.

        It gets the same answer again, though a repair has put it aside: asked anew, it would do both.
        """
        if entry.answered_at is None:
            return False
        return any(
            other.asked_at is not None
            and other.asked_at >= entry.answered_at
            and (other.write or other.kind in (INTERRUPT, SIGNAL, CHILD))
            and not other.past
            and other.key not in self.asked
            for other in self.ledger.entries.values()
        )

    def stands(self, entry: Entry) -> None:
        """It is answered with a failure that a repair has put aside: whoever looks at how the run ends is to know."""
        if entry.aside and entry.status == FAILED:
            self.stood.append(entry.key)

    def checked(self, work: Work) -> Work:
        """A node that swallowed a Stop gets it again at its next question; the executor looks here at the end.

        What outlives its node, a task or a thread that it did not wait for, asks nothing any more.
        """
        question = object()
        self.under_way.add(question)  # before the look at `over`, as the executor looks the other way round
        try:
            if self.over:
                raise Permanent(f"node {self.ledger.node!r} is over: it did not wait for what it had begun")
            if self.stopped is not None:
                raise self.stopped
            return (yield from work)
        except Stop as stop:
            self.stopped = stop
            raise
        finally:
            self.under_way.discard(question)

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
