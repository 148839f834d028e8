"""The ledger of a run that is rehearsed: the entries of its steps in a dict, and what else it would ask the world."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any  # blobs and recorded values are any value

from runs.core import codec
from runs.core.errors import Permanent, SecretFound
from runs.core.ledger import (
    CANCELLED,
    COMPENSATED,
    DONE,
    FAILED,
    IN_DOUBT,
    INTERRUPT,
    OPEN,
    OUTCOMES,
    SIGNAL,
    TIMER,
    VALUE,
    Entry,
    settled,
)
from runs.core.memory_children import MemoryChildren
from runs.core.moments import moment_of
from runs.core.rate import Rate, Window
from runs.core.spending import NAME, told_by


@dataclass
class MemoryLedger(MemoryChildren):
    """A ledger that forgets when the process ends: for a REPL, and for tests of a graph's logic.

    `answers` maps an interrupt's key to a dict {verdict, payload, reason, by}, or a function of the request that
    makes one; what has no answer waits. That of a wait for a signal is {payload}. `mailbox` holds signals that came
    before anybody waits for them, as (name, payload). `shown` is the text that each call has shown, by its key.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    mailbox: list[tuple[str, Any]] = field(default_factory=list)
    run_id: str = "00000000-0000-7000-8000-000000000001"
    node: str = ""
    step: int = 1
    opened: int = 0
    actor: str = "memory"
    operators: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    past: dict[str, Entry] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    windows: dict[tuple[str, str], Window] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    clock: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    quarantine: timedelta = timedelta(seconds=60)

    def open(self, entry: Entry, tried: timedelta | None = None) -> Entry:
        self.entries[entry.key] = entry
        self.opened += 1
        entry.step, entry.id = self.step, self.opened
        if tried is not None:
            self.try_again(entry, tried)
        return entry

    def ask(self, entry: Entry, due: timedelta | datetime | None) -> Entry:
        entry.due_at = moment_of(due, self.clock)
        return self.open(entry)

    def wait(self, entry: Entry, until: timedelta | datetime | None) -> Entry:
        if entry.key not in self.entries:
            entry.due_at = moment_of(until, self.clock)
            self.open(entry)
        place = next((n for n, (name, _) in enumerate(self.mailbox) if name == entry.name), None)
        if entry.kind == SIGNAL and place is not None:
            _end(entry, self.mailbox.pop(place)[1])
        elif entry.due_at is not None and entry.due_at <= self.clock:
            _end(entry, None, DONE if entry.kind == TIMER else FAILED)
        return entry

    def record(self, entry: Entry, value: Any) -> Entry:
        entry.result = codec.dumps(value)
        entry.status = DONE
        self.entries[entry.key] = entry
        if entry.kind == VALUE and entry.name == NAME:
            self.spent += told_by(entry.result)
        self._done(entry)
        return entry

    def fail(self, entry: Entry, kind: str, message: str) -> Entry:
        entry.status, entry.error_kind, entry.error = FAILED, kind, message
        self.entries[entry.key] = entry
        return entry

    def try_again(self, entry: Entry, limit: timedelta) -> None:
        entry.tried_at, entry.status = self.clock, OPEN
        entry.attempts += 1
        entry.due_at = self.clock + limit + self.quarantine

    def failed_try(self, entry: Entry, message: str) -> None:
        entry.tried_at, entry.due_at, entry.error = None, None, message
        self.entries[entry.key] = entry

    def unclear(self, entry: Entry, message: str) -> None:
        entry.error = message

    def doubt(self, entry: Entry, message: str, under_way: bool = True) -> None:
        entry.status, entry.error = IN_DOUBT, message
        if not under_way:
            entry.tried_at, entry.due_at = None, None

    def supersede(self, entry: Entry) -> None:
        entry.status = CANCELLED

    def let_through(self, name: str, per_key: str, rate: Rate, in_line: bool) -> float:
        """Here nobody else calls, and waiting takes no time: the ledger's clock goes on to the moment of the call."""
        wait = 1.0
        while wait:
            before = self.windows.get((name, per_key), Window())
            self.windows[name, per_key], wait = before.ask(rate, self.clock, in_line=in_line)
            self.clock, in_line = self.clock + timedelta(seconds=wait), True
        return wait

    def listen(self, entry: Entry) -> Callable[[str], None]:
        self.shown[entry.key] = ""

        def show_text(more: str) -> None:
            self.shown[entry.key] += more

        return show_text

    def hush(self, entry: Entry) -> None:
        self.shown.pop(entry.key, None)

    def admit(self, entry: Entry) -> None:
        for name, value in self.secrets.items():
            if value in entry.request or value in entry.key:
                raise SecretFound(entry.name, name)

    def may_call(self, entry: Entry | None) -> bool:
        return True

    def holder(self, idempotency_key: str) -> tuple[str, Entry] | None:
        for entry in self.past.values():
            if entry.idempotency_key == idempotency_key:
                return self.run_id, entry
        return None

    def to_compensate(self) -> Entry | None:
        given_up = {entry.compensates for entry in self._writes() if entry.status == FAILED}
        done = [entry for entry in self._writes() if entry.status == DONE and entry.compensation]
        return next((entry for entry in reversed(done) if entry.id not in given_up), None)

    def _done(self, entry: Entry) -> None:
        for undone in self._writes():
            if entry.status == DONE and entry.compensates is not None and undone.id == entry.compensates:
                undone.status = COMPENSATED

    def _writes(self) -> list[Entry]:
        return [entry for entry in (*self.past.values(), *self.entries.values()) if entry.write]

    def remark(self, entry: Entry | None, kind: str, body: str) -> None:
        self.remarks.append((kind, body))

    def now(self) -> datetime:
        return self.clock

    def chance(self) -> float:
        return 0.5

    def uuid(self) -> uuid.UUID:
        return uuid.uuid5(uuid.UUID(self.run_id), f"{self.step}:{len(self.entries)}")

    def secret(self, name: str) -> str:
        try:
            return self.secrets[name]
        except KeyError:
            raise Permanent(f"secret {name!r} is not known to this ledger") from None

    def put(self, content: bytes, media_type: str) -> codec.BlobRef:
        ref = codec.BlobRef(codec.digest(content), len(content), media_type)
        self.blobs[ref.sha256] = content
        return ref

    def read(self, blob: codec.BlobRef) -> bytes:
        return self.blobs[blob.sha256]

    def settle(self) -> bool:
        """Give the scripted answers to what is open; True when something was answered."""
        moved = False
        for key, entry in list(self.entries.items()):
            if entry.kind == INTERRUPT and entry.status == OPEN and key in self.answers:
                given = self.answers[key]
                request = codec.loads(entry.request)
                answer = given(request) if callable(given) else given
                answer = {"payload": request["payload"], "reason": "", "by": "someone", **answer}
                answer.setdefault("outcome", OUTCOMES[answer["verdict"]])
                entry.result, entry.status, entry.taken = codec.dumps(answer), DONE, True
                entry.approved_digest = codec.digest(codec.dumps(answer["payload"]))
                if entry.settles is not None:
                    self._apply(self.entries[entry.settles], answer["payload"])
                moved = True
            elif entry.kind == SIGNAL and entry.status == OPEN and key in self.answers:
                given = self.answers[key]
                _end(entry, (given(codec.loads(entry.request)) if callable(given) else given).get("payload"))
                moved = True
        return moved

    def _apply(self, doubted: Entry, said: dict[str, Any]) -> None:
        for name, value in settled(doubted, said["outcome"], said.get("result")).items():
            setattr(doubted, name, value)
        self._done(doubted)

    def leave_step(self) -> None:
        self.past.update(self.entries)
        self.entries = {}
        self.step += 1


def _end(wait: Entry, result: Any, status: str = DONE) -> None:
    wait.result, wait.status, wait.taken = codec.dumps(result), status, True
