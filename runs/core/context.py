"""`run`, as a node gets it: every question goes through the ledger, so that nothing happens twice.

`Questions` holds the logic, once, as generators; `Run` and `AsyncRun` are its two faces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any  # arguments, results and recorded values are the author's

from runs.core import codec, effects
from runs.core.ask import Answer, Ask
from runs.core.commands import Command, Ended, Invoke, Together, Work, carry_out, carry_out_async
from runs.core.errors import CodecError, Diverged, Expired, Permanent, Rejected
from runs.core.keys import Keys, resolve
from runs.core.ledger import (
    CANCELLED,
    DONE,
    EFFECT,
    IN_DOUBT,
    INTERRUPT,
    OPEN,
    VALUE,
    Entry,
    Ledger,
    effect,
    question,
)
from runs.core.outcomes import Fails, Stop, Waits
from runs.core.tool import Call, Tool

ADVICE = "give the call an explicit key if it is the same thing in other words"


class Questions:
    """What one execution of a node asks, in order."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.keys = Keys()
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

    # -- calls

    def call(self, tool: Tool, key: str | None, approve: Ask | None, arguments: dict[str, Any]) -> Work:
        bound = tool.bind(**arguments)
        name = self.keys.of_call(bound, key)
        self._ask_for(name, approve is not None)
        if approve is None:
            return (yield from self._effect(bound, name, explicit=key is not None))
        return (yield from self._gated(bound, name, approve, explicit=key is not None))

    def _ask_for(self, name: str, gated: bool = False) -> None:
        self.asked.add(name)
        if gated:
            self.asked.add(f"{name}?")

    def _effect(
        self,
        call: Call,
        key: str,
        explicit: bool,
        decided_by: str | None = None,
        proposal: Call | None = None,
    ) -> Work:
        entry = self.ledger.entries.get(key)
        if entry is None and explicit:
            entry = yield from self._earlier(call, key)
        if entry is None:
            self._refuse_divergence(call, key)
            if decided_by is not None:
                self._refuse_unapproved(call, decided_by)
            entry = effect(call, key, self._idempotency_key(key, explicit), decided_by)
            entry.proposal_digest = proposal.digest if proposal is not None else ""
            self.ledger.admit(entry)
        elif entry.request_digest != call.digest or entry.name != call.tool.name:
            yield from self._recorded_wins(entry, call)
        return (yield from effects.perform(self.ledger, call.tool, entry))

    def _idempotency_key(self, key: str, explicit: bool) -> str:
        """Unique over all runs: an author's key as written, a derived one below its run and step."""
        return (
            resolve(key, self.ledger.run_id) if explicit else f"{self.ledger.run_id}:{self.ledger.step}:{key}"
        )

    def _earlier(self, call: Call, key: str) -> Work:
        """An explicit key holds in the whole run, and without {run_id} over all runs."""
        held = yield partial(self.ledger.holder, resolve(key, self.ledger.run_id))
        if held is None:
            return None
        run_id, entry = held
        if run_id != self.ledger.run_id:
            raise Permanent(
                f"key {key!r} belongs to run {run_id}; put {{run_id}} into the key, or use another"
            )
        if entry.name != call.tool.name or entry.request_digest != call.digest:
            raise Permanent(
                f"key {key!r} was used in step {entry.step} for {entry.name} with other arguments; use another key"
            )
        return entry

    def _recorded_wins(self, entry: Entry, call: Call) -> Work:
        """An explicit key is the author's word that it is the same thing: what was recorded is what goes out."""
        if entry.name != call.tool.name:
            raise Permanent(
                f"key {entry.key!r} was used for {entry.name}, now for {call.tool.name}; use another key"
            )
        if entry.decided_by is None:
            yield partial(self.ledger.remark, entry, "other_request", call.request)

    def _refuse_divergence(self, call: Call, key: str) -> None:
        """A write is never substituted silently (DESIGN section 4, Keys)."""
        if not call.tool.write:
            return
        for entry in self.ledger.entries.values():
            if not entry.write or entry.name != call.tool.name or entry.key in self.asked:
                continue
            if entry.kind == EFFECT and entry.status in (DONE, OPEN, IN_DOUBT):
                self._diverge(call.request, entry)
            if entry.kind == INTERRUPT and entry.status in (DONE, OPEN):
                self._diverge(call.request, entry)

    def _diverge(self, asked: str, entry: Entry) -> None:
        error = Diverged(asked, f"{entry.key} {entry.request}", ADVICE)
        raise Stop(Fails("diverged", str(error)))

    # -- gated calls

    def _gated(self, call: Call, key: str, ask: Ask, explicit: bool) -> Work:
        if explicit and (done := (yield from self._gated_earlier(call, key))) is not None:
            return (yield from effects.perform(self.ledger, call.tool, done))
        while True:
            asked = yield from self._proposal(call, key, ask)
            approved = self._approved(call.tool, asked)
            if ask.bind is None or self.ledger.entries.get(key) is not None:
                break
            bound = yield Invoke(ask.bind, positional=(call.tool.unpack(approved.request),))
            if codec.dumps(bound) == codec.dumps(asked_about(asked).get("bound")):
                break
            yield partial(self.ledger.supersede, asked)
        return (yield from self._effect(approved, key, explicit, decided_by=asked.key, proposal=call))

    def _gated_earlier(self, call: Call, key: str) -> Work:
        if self.ledger.entries.get(key) is not None or self.ledger.entries.get(f"{key}?") is not None:
            return None
        held = yield partial(self.ledger.holder, resolve(key, self.ledger.run_id))
        if held is None:
            return None
        run_id, entry = held
        proposal = entry.proposal_digest or entry.request_digest
        if run_id == self.ledger.run_id and entry.name == call.tool.name and proposal == call.digest:
            return entry
        return (yield from self._earlier(call, key))

    def _proposal(self, call: Call, key: str, ask: Ask) -> Work:
        """The question `<key>?` of this step, opened if need be; superseded ones are passed over."""
        name, number = f"{key}?", 1
        while (asked := self.ledger.entries.get(name)) is not None and asked.status == CANCELLED:
            number += 1
            name = f"{key}?{number}"
        self.asked.add(name)
        if asked is None:
            self._refuse_divergence(call, name)
            more = {"key": key}
            if ask.bind is not None:
                more["bound"] = yield Invoke(ask.bind, positional=(call.tool.unpack(call.request),))
            schema = ask.schema if ask.schema is not None else call.tool.schema
            asked = question(ask, name, codec.decode(call.request), call, **more)
            request = codec.loads(asked.request)
            request["schema"] = schema
            asked.request = codec.dumps(request)
            asked.request_digest = codec.digest(asked.request)
            asked.name, asked.write = call.tool.name, call.tool.write
            yield partial(self.ledger.ask, asked, ask.due)
        if not (asked.status == DONE and asked.taken):
            raise Stop(Waits((name,)))
        return asked

    def _approved(self, tool: Tool, asked: Entry) -> Call:
        """Exactly what people approved, or what they said instead."""
        answer = asked.value
        refuse(answer, codec.loads(asked.request)["question"])
        call = tool.rebind(answer["payload"])
        if call.digest != asked.approved_digest:
            raise Permanent(f"{tool.name}: what was approved is not what would run; nothing was sent")
        return call

    def _refuse_unapproved(self, call: Call, decided_by: str) -> None:
        if call.digest != self.ledger.entries[decided_by].approved_digest:
            raise Permanent(f"{call.tool.name}: what was approved is not what would run; nothing was sent")

    # -- people

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
        return asked

    # -- several at once

    def gather(self, items: tuple[Call | Ask, ...]) -> Work:
        """All are asked for, in order, before any opens; a wait is raised when every call is recorded."""
        named: list[tuple[Call | Ask, str]] = []
        for item in items:
            if isinstance(item, Ask):
                named.append((item, self.keys.named(item.name or self.ledger.node, "interrupt")))
            elif isinstance(item, Call):
                named.append((item, self.keys.of_call(item, None)))
            else:
                raise Permanent(f"gather: {item!r} is neither tool.bind(...) nor Ask(...)")
            self.asked.add(named[-1][1])
        for item, name in named:
            if isinstance(item, Ask):
                yield from self._open_interrupt(item, name)
        works = tuple(self._one_of_gather(item, name) for item, name in named)
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

    def _one_of_gather(self, item: Call | Ask, name: str) -> Work:
        if isinstance(item, Call):
            return (yield from self._effect(item, name, explicit=False))
        asked = yield from self._open_interrupt(item, name)
        if not (asked.status == DONE and asked.taken):
            raise Stop(Waits((asked.key,)))
        return answer_of(asked)

    # -- values

    def value(self, stem: str, fn: Callable[[], Any], request: str = "null") -> Work:
        key = self.keys.counted(stem)
        self.asked.add(key)
        entry = self.ledger.entries.get(key)
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
        return self.value("spend", lambda: {"tokens": tokens, "usd": usd})

    def blob(self, content: bytes | str, media_type: str) -> Work:
        data = content.encode() if isinstance(content, str) else bytes(content)
        return (yield partial(self.ledger.put, data, media_type))

    # -- the end of an execution

    def unfinished(self) -> list[Entry]:
        """Writes that are open or in doubt: a node cannot commit over them."""
        return [
            entry
            for entry in self.ledger.entries.values()
            if entry.kind == EFFECT and entry.write and entry.status in (OPEN, IN_DOUBT)
        ]


def asked_about(asked: Entry) -> dict[str, Any]:
    return codec.loads(asked.request)["call"] or {}


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

    def gather(self, *items: Call | Ask) -> Any:
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
