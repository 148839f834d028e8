"""What every kind of question shares: the ledger, the keys asked for so far, and where the execution stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any  # what a rule's reader makes of its word

from runs.core import codec, effects, rules
from runs.core.ask import Ask
from runs.core.commands import Invoke, Work
from runs.core.errors import Permanent
from runs.core.keys import Keys, repeats
from runs.core.ledger import CHILD, DONE, EFFECT, FAILED, IN_DOUBT, INTERRUPT, OPEN, SIGNAL, Entry, Ledger
from runs.core.outcomes import LetsGo, Stop
from runs.core.rules import Judgement, Rule
from runs.core.tool import Tool


class Asking:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys = Keys()
        self.repeats = repeats(ledger.entries)
        self.asked: set[str] = set()
        self.tools: dict[str, Tool] = {}  # by name: those that it has called
        self.left: set[str] = (
            set()
        )  # writes whose calls ended without an outcome, and that it went on without
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

    def unfinished(self) -> list[Entry]:
        """Writes that are open or in doubt: a node cannot commit over them."""
        return [
            entry
            for entry in self.ledger.entries.values()
            if entry.kind == EFFECT and entry.write and entry.status in (OPEN, IN_DOUBT)
        ]

    def before_more(self, *asked: str) -> Work:
        """What became of the writes that the node has left behind, but for those that it asks for now, before it does
        more. One that has happened after all is told to the node, which begins anew: it went on as if it had not.
        """
        left = [entry for entry in self.unfinished() if entry.key in self.left and entry.key not in asked]
        yield from self._find_out(left)
        if happened := [entry.key for entry in left if entry.status == DONE]:
            raise Stop(LetsGo(f"{', '.join(happened)} was done, and the node had gone on without it"))

    def find_out(self) -> Work:
        """How the writes end that the node asked for and left open. Raises Stop where only time or a person tells."""
        yield from self._find_out([entry for entry in self.unfinished() if entry.key in self.asked])

    def _find_out(self, left: Iterable[Entry]) -> Work:
        yield from effects.find_out_all(
            effects.find_out(self.ledger, self.tools[entry.name], entry) for entry in left
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
