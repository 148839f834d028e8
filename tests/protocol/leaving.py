"""A node that makes one write and, where that gives no answer, another one instead (runs/core/asking.py, effects.py).

The first write's call may be cancelled before it begins, be refused, or fail so that nobody knows whether it happened;
its provider can be asked later. The node swallows all of it and goes the other way. It may be killed at any moment, and
is executed anew then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

EXECUTIONS = 4  # of the node, each with one try of the first write at most


class World(NamedTuple):
    first: str = "none"  # the entry of the first write: none, intended, open (surely not done), done, failed
    happened: bool = False  # at the provider
    other: bool = False  # the other write, which is recorded as soon as it happened
    at: str = "begin"  # where this execution of the node is: begin, intended, left, returned; or ended
    executions: int = EXECUTIONS
    sent: bool = False  # it was called, or a worker was killed that was about to
    asked: bool = False  # the provider, or people, what became of it
    left: tuple[int, ...] = ()
    bad: str = ""


class Leaving:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", **budgets: int) -> None:
        self.broken = frozenset(broken.split())
        self.budgets = Budgets(**({"crash": 2, "cancel": -1} | budgets))

    def start(self) -> World:
        return World(left=self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s

    def show(self, s: World) -> str:
        return f"{s.at}: first {s.first}, happened {s.happened}, other {s.other}"

    def fault(self, s: World) -> str:
        if s.happened and s.other:
            return "both writes were made"
        if s.at == "ended" and s.first in ("intended", "open"):
            return "a step was left with an open write"
        if s.asked and not s.sent:
            return "asked about what was never sent"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        if s.at != "ended" and (left := self.budgets.spend(s.left, "crash")) is not None:
            yield "the worker is killed", s._replace(at="begin", sent=s.sent or s.at == "intended", left=left)
        if s.at == "begin":
            yield from self._first(s)
        elif s.at == "intended":
            yield from self._call(s)
        elif s.at == "left":
            yield from self._other(s)
        elif s.at == "returned":
            yield from self._leave(s)

    # -- the first write

    def _first(self, s: World) -> Iterator[tuple[str, World]]:
        if s.first == "done":
            yield "the first is done: the node has what it wants", s._replace(at="returned")
        elif s.first == "failed":
            yield "the first has failed: the node goes the other way", s._replace(at="left")
        elif s.first == "intended":
            yield from self._found(s, "begin", again=True)
        elif s.executions:
            tried = s._replace(first="intended", executions=s.executions - 1)
            yield "the first is intended", tried._replace(at="intended")
            if self.budgets.spend(s.left, "cancel") is not None:
                taken_back = "intended" if "keeps_intent" in self.broken else "open"
                yield (
                    "it is cancelled before its call",
                    tried._replace(first=taken_back, at="left"),
                )

    def _call(self, s: World) -> Iterator[tuple[str, World]]:
        s = s._replace(sent=True)
        yield "it is called and answers", s._replace(first="done", happened=True, at="returned")
        yield "it is refused, surely not done", s._replace(first="open", at="left")
        for happened in (True, False):
            words = "and it happened" if happened else "and it did not"
            yield f"nobody knows, {words}", s._replace(happened=happened, at="left")

    def _found(self, s: World, then: str, *, again: bool) -> Iterator[tuple[str, World]]:
        """The provider, or people, say what became of it. `again`: its node asks for it, and it may be called then."""
        s = s._replace(asked=True)
        if s.happened:
            yield "found out: it happened", s._replace(first="done", at=then)
        elif again and s.executions:
            yield "found out: it did not, and is asked for again", s._replace(first="open", at=then)
        else:
            yield "found out: it did not", s._replace(first="failed", at=then)

    # -- the other

    def _other(self, s: World) -> Iterator[tuple[str, World]]:
        """Before the node does more, what became of the first is known."""
        known = "no_look" not in self.broken
        if s.other:
            yield "the other is done already", s._replace(at="returned")
        elif known and s.first == "intended":
            for words, after in self._found(s, "left", again=False):
                goes_on = after.first == "failed" or "goes_on" in self.broken
                yield words, after if goes_on else after._replace(at="begin")
        elif known and s.first == "open":
            made = "made_after_all" in self.broken
            yield "given up: it was not done", s._replace(first="none" if made else "failed")
        else:
            yield "the other is made", s._replace(other=True, at="returned")

    # -- the end of the step

    def _leave(self, s: World) -> Iterator[tuple[str, World]]:
        if s.first == "open":
            yield "given up: it was not done", s._replace(first="failed")
        elif s.first == "intended":
            yield from self._found(s, "returned", again=False)
        else:
            yield "the step is left", s._replace(at="ended")
