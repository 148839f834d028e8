"""All that one execution of a node asks, in order; each question once, as a generator of commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any  # recorded values are the author's

from runs.core import codec, spending
from runs.core.ask import Ask
from runs.core.calls import Calls
from runs.core.child import Child
from runs.core.children import Children
from runs.core.commands import Ended, Invoke, Together, Work
from runs.core.errors import CodecError, Permanent
from runs.core.ledger import DONE, EFFECT, VALUE, Entry
from runs.core.outcomes import Stop, Waits
from runs.core.people import People
from runs.core.tool import Call
from runs.core.waiting import Timer, Wait, Waiting

Item = Call | Ask | Wait | Timer | Child


class Questions(Calls, People, Waiting, Children):
    """Calls, people, waits and children, several at once, and values recorded so that every execution sees the same."""

    def gather(self, items: tuple[Item, ...]) -> Work:
        """All are asked for, in order, before any opens; a wait is raised when every call is recorded."""
        named: list[tuple[Item, str]] = []
        for item in items:
            if isinstance(item, Ask):
                named.append((item, self.keys.named(item.name or self.ledger.node, "interrupt")))
            elif isinstance(item, Call):
                base = self.keys.of_call(item, None)
                named.append((item, base))
                self.asked.add(self.repeats.get(base, base))
                self.tools[item.tool.name] = item.tool
                continue
            elif isinstance(item, (Wait, Timer)):
                named.append((item, self.keys.counted(item.name)))
            elif isinstance(item, Child):
                named.append((item, (yield from self._entry_of(item)).key))
            else:
                raise Permanent(
                    f"gather: {item!r} is none of tool.bind(...), Ask(...), Wait(...), Timer(...) and a child"
                )
            self.asked.add(named[-1][1])
        named = [(item, self._current(name) if isinstance(item, Call) else name) for item, name in named]
        self.asked.update(name for _, name in named)
        yield from self.before_more(*(name for _, name in named))
        opened: dict[str, Entry] = {}
        for item, name in named:
            if isinstance(item, Ask):
                opened[name] = yield from self._open_interrupt(item, name)
            elif isinstance(item, Child):
                [opened[name]] = yield from self._looked_at([self.ledger.entries[name]])
            elif not isinstance(item, Call):
                opened[name] = yield from self._open_wait(item, name)
        if not named:
            return []
        works = tuple(self._one_of_gather(item, name, opened.get(name)) for item, name in named)
        ends: list[Ended] = yield Together(works)
        raised = [end.raised for end in ends if end.raised is not None]
        stops = [error for error in raised if isinstance(error, Stop)]
        waits = [stop.outcome for stop in stops if isinstance(stop.outcome, Waits)]
        others = [stop for stop in stops if not isinstance(stop.outcome, Waits)]
        if others:
            raise others[0]
        if waits:
            raise Stop(Waits(tuple(key for wait in waits for key in wait.keys)))
        if raised:
            raise raised[0]
        return [end.result for end in ends]

    def _one_of_gather(self, item: Item, name: str, opened: Entry | None) -> Work:
        if isinstance(item, Call):
            return (yield from self._effect(item, name, explicit=False))
        assert opened is not None, "all but calls are opened before"
        if isinstance(item, Ask):
            return self._answer(opened)
        if isinstance(item, Child):
            return (yield from self._end_of(opened))
        return self._ended_wait(opened)

    def value(self, stem: str, fn: Callable[[], Any], request: str = "null") -> Work:
        key = self.keys.counted(stem)
        self.asked.add(key)
        entry = self.ledger.entries.get(key)
        if entry is not None and entry.kind != VALUE:
            raise Permanent(
                f"key {key!r} is a {entry.kind} of this step, and was asked for as a value; "
                "give one of them another name"
            )
        if entry is None:
            entry = Entry(key, VALUE, stem, request, codec.digest(request))
            self.ledger.admit(entry)
            made = yield fn if not isinstance(fn, Invoke) else fn
            try:
                yield partial(self.ledger.record, entry, made)
            except CodecError as error:
                raise Permanent(f"{stem}: the value cannot be recorded: {error}") from error
        return entry.value

    def once(self, name: str, fn: Callable[[], Any]) -> Work:
        return self.value(name, Invoke(fn))

    def note(self, text: str) -> Work:
        return self.value("note", lambda: str(text))

    def spend(self, tokens: int, usd: Any) -> Work:
        return self.value(spending.NAME, lambda: {"tokens": tokens, "usd": usd})

    def blob(self, content: bytes | str, media_type: str) -> Work:
        data = content.encode() if isinstance(content, str) else bytes(content)
        return (yield partial(self.ledger.put, data, media_type))

    def passed_over(self) -> list[Entry]:
        """Writes of this step that are done, and that this execution has not asked for."""
        done = [entry for entry in self.ledger.entries.values() if entry.write and entry.status == DONE]
        return [
            entry
            for entry in done
            if entry.kind == EFFECT and entry.key not in self.asked and entry.compensates is None
        ]
