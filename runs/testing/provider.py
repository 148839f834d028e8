"""The world outside, as the crash kit sees it: a journal that outlives the killed, and tells what really happened."""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # arguments and results are the author's

from runs.core import codec, effects
from runs.core.ask import Found
from runs.core.commands import Work
from runs.core.errors import CodecError
from runs.core.graph import Graph
from runs.core.ledger import Entry, Ledger
from runs.core.tool import Tool
from runs.models.entry import LedgerEntry
from runs.testing import outside

OUTSIDE = "outside:"  # in the journal: not a tool, but a node


@dataclass(frozen=True)
class Happened:
    """One line of the journal: a call that reached the provider. `again`: it knew the key, and did nothing."""

    tool: str
    write: bool
    key: str
    request: str
    result: str | None
    again: bool = False


class Provider:
    """Stands between every tool and its function: what is called is written down before the engine hears of it.

    `stand_ins` maps a tool's name to a function that is called instead of the tool's own.
    """

    def __init__(
        self, journal: Path, stand_ins: Mapping[str, Callable[..., Any]], watches_outside: bool = False
    ) -> None:
        self.journal, self.stand_ins, self.watches_outside = journal, stand_ins, watches_outside

    @contextmanager
    def in_place(self, graph: Graph | None = None) -> Iterator[None]:
        """With `graph` also what its nodes do outside of tools is written down, if that is watched."""
        real = effects.perform
        if self.watches_outside and graph is not None:
            outside.watch(
                graph, lambda node, act: self._write(Happened(f"{OUTSIDE}{node}", False, "", act, None))
            )

        def perform(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
            return real(ledger, self._watched(tool, entry), entry)

        effects.perform = perform
        try:
            yield
        finally:
            effects.perform = real

    def happenings(self) -> list[Happened]:
        if not self.journal.exists():
            return []
        return [Happened(**json.loads(line)) for line in self.journal.read_text().splitlines()]

    def acts_outside(self) -> Counter[tuple[str, str]]:
        """(node, act) of all that nodes did outside of tools."""
        called = (call for call in self.happenings() if call.tool.startswith(OUTSIDE))
        return Counter((call.tool.removeprefix(OUTSIDE), call.request) for call in called)

    def find(self, key: str) -> Happened | None:
        """The first call under an idempotency key that did something."""
        return next((call for call in self.happenings() if call.key == key and not call.again), None)

    def truth(self, entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any] | None:
        """What an honest operator, who looked at the provider, says to a question `<key>!`; None to any other."""
        doubted = request.get("settles")
        if not doubted:
            return None
        call = self.find(doubted["idempotency_key"])
        said = {"outcome": "not_happened", "result": None}
        if call is not None:
            said = {"outcome": "happened", "result": _value(call)}
        return {"verdict": "respond", "payload": said, "reason": "looked at the provider's journal"}

    # -- what a call goes through

    def _watched(self, tool: Tool, entry: Entry) -> Tool:
        fn = self.stand_ins.get(tool.name, tool.fn)

        def known(arguments: dict[str, Any]) -> Happened | None:
            call = self.find(entry.idempotency_key) if tool.write and tool.honours_key else None
            if call is not None:
                self._write(replace(call, again=True))
            return call

        def call(**arguments: Any) -> Any:
            if earlier := known(arguments):
                return _value(earlier)
            return self._done(tool, entry, fn(**arguments))

        async def call_async(**arguments: Any) -> Any:
            if earlier := known(arguments):
                return _value(earlier)
            return self._done(tool, entry, await fn(**arguments))

        reconcile = tool.reconcile
        if reconcile is not None and tool.name in self.stand_ins:
            reconcile = self._reconcile
        return replace(tool, fn=call_async if inspect.iscoroutinefunction(fn) else call, reconcile=reconcile)

    def _reconcile(self, idempotency_key: str, arguments: dict[str, Any]) -> Found | None:
        call = self.find(idempotency_key)
        return None if call is None else Found(_value(call))

    def _done(self, tool: Tool, entry: Entry, result: Any) -> Any:
        try:
            text = codec.dumps(result)
        except CodecError:
            text = None  # the engine will say so
        self._write(Happened(tool.name, tool.write, entry.idempotency_key or entry.key, entry.request, text))
        return result

    def _write(self, call: Happened) -> None:
        """One write to a file opened for appending: whole or not at all, whoever is killed beside."""
        line = json.dumps(call.__dict__).encode() + b"\n"
        file = os.open(self.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def _value(call: Happened) -> Any:
    return None if call.result is None else codec.loads(call.result)
