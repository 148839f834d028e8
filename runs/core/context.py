"""`run`, as a node gets it: every question goes through the ledger, so that nothing happens twice.

`Questions` holds the logic, once, as generators; `Run` and `AsyncRun` are its two faces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any  # arguments, results and recorded values are the author's

from runs.core import codec
from runs.core.ask import Ask
from runs.core.child import Child
from runs.core.children import AT_ONCE
from runs.core.commands import Command, Work, carry_out, carry_out_async
from runs.core.errors import Permanent
from runs.core.graph import Graph
from runs.core.ledger import EFFECT
from runs.core.questions import Questions
from runs.core.tool import Call, Tool
from runs.core.waiting import Timer, Wait


class Run:
    """What a node asks with; every verb may be asked again after a crash and returns what was recorded."""

    def __init__(self, questions: Questions, do: Callable[[Command], Any]) -> None:
        self._questions = questions
        self._do = do

    @property
    def id(self) -> str:
        return self._questions.ledger.run_id

    @property
    def node(self) -> str:
        return self._questions.ledger.node

    @property
    def step(self) -> int:
        """The step in progress, from 1."""
        return self._questions.ledger.step

    def secret(self, name: str) -> codec.SecretRef:
        """A reference, resolved only in the moment of a call."""
        return codec.SecretRef(name)

    def sent(self, key: str) -> dict[str, Any]:
        """The arguments that went out under this key in the current step."""
        entry = self._questions.ledger.entries.get(key)
        if entry is None or entry.kind != EFFECT:
            raise Permanent(f"sent({key!r}): this step has made no such call")
        return codec.decode(entry.request)

    def call(
        self, tool: Tool, /, key: str | None = None, approve: Ask | None = None, **arguments: Any
    ) -> Any:
        """A ledgered effect; with `approve` it is proposed to people first and runs with what they approved."""
        return self._perform(self._questions.call(tool, key, approve, arguments))

    def interrupt(self, question: str, payload: Any = None, name: str | None = None, **options: Any) -> Any:
        """Ask people; returns an Answer. Raises Expired when the deadline passed."""
        return self._perform(self._questions.interrupt(Ask(question, payload, name, **options)))

    def wait_for(self, name: str, timeout: timedelta | datetime | None = None) -> Any:
        """The payload of the next signal of that name, also of one that came earlier. Raises TimedOut."""
        return self._perform(self._questions.wait(Wait(name, timeout)))

    def sleep(self, delta: timedelta) -> Any:
        """Go on after so long; no worker is needed meanwhile."""
        return self._perform(self._questions.wait(Timer(delta)))

    def sleep_until(self, at: datetime) -> Any:
        """Go on at that moment, or at once where it has passed."""
        return self._perform(self._questions.wait(Timer(at)))

    def start(
        self, graph: Graph | str, input: Any = None, key: str | None = None, on_parent_end: str | None = None
    ) -> Any:
        """Start a run of that graph and go on; returns a Child, whose end `join` waits for.

        `on_parent_end` says what becomes of it when this run ends first: "cancel" or "detach" (the graph's by default).
        """
        return self._perform(self._questions.start(graph, input, key, on_parent_end))

    def join(self, *children: Child) -> Any:
        """Wait until all of these have ended; returns a ChildEnd of each, in order. A failure is a value."""
        return self._perform(self._questions.join(children))

    def map(
        self,
        graph: Graph | str,
        inputs: Iterable[Any],
        at_once: int = AT_ONCE,
        key: str | None = None,
        on_parent_end: str | None = None,
    ) -> Any:
        """A run of that graph for each input, at most `at_once` at a time; waits, and returns all their ends."""
        return self._perform(self._questions.map(graph, inputs, at_once, key, on_parent_end))

    def gather(self, *items: Call | Ask | Wait | Timer | Child) -> Any:
        """Start all of these at once; results in order."""
        return self._perform(self._questions.gather(items))

    def once(self, name: str, fn: Callable[[], Any]) -> Any:
        """The value that fn returned the first time."""
        return self._perform(self._questions.once(name, fn))

    def now(self) -> Any:
        """The moment when this was first asked, a datetime in UTC."""
        return self._perform(self._questions.value("now", self._questions.ledger.now))

    def uuid(self) -> Any:
        return self._perform(self._questions.value("uuid", self._questions.ledger.uuid))

    def note(self, text: str) -> Any:
        return self._perform(self._questions.note(text))

    def spend(self, tokens: int = 0, usd: Any = 0) -> Any:
        return self._perform(self._questions.spend(tokens, usd))

    def blob(self, content: bytes | str, media_type: str = "text/plain; charset=utf-8") -> Any:
        """Store bytes and return a reference to them."""
        return self._perform(self._questions.blob(content, media_type))

    def read(self, blob: codec.BlobRef) -> Any:
        return self._perform(_once(partial(self._questions.ledger.read, blob)))

    def _perform(self, work: Work) -> Any:
        return carry_out(self._questions.checked(work), self._do)


class AsyncRun(Run):
    """The same verbs for an `async def` node: each is awaited."""

    def _perform(self, work: Work) -> Awaitable[Any]:
        return carry_out_async(self._questions.checked(work), self._do)


def _once(act: Callable[[], Any]) -> Generator[Command, Any, Any]:
    return (yield act)
