"""What a node's questions are kept in: the entries of the current step, and the acts that change them.

`Ledger` is the contract. One keeps it in memory, so that a graph can be tried in a REPL (memory_ledger.py); the one for
production is rows (runs/engine/ledger.py). Each act is one durable change: after it returns, a crash loses nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol  # blobs and recorded values are any value

from runs.core import codec
from runs.core.ask import Ask
from runs.core.child import ChildEnd
from runs.core.errors import Permanent
from runs.core.graph import Graph
from runs.core.rate import Rate
from runs.core.rules import Judgement
from runs.core.tool import Call

EFFECT, INTERRUPT, VALUE = "effect", "interrupt", "value"
SIGNAL, TIMER, CHILD = "signal", "timer", "child"
OPEN, DONE, FAILED, IN_DOUBT, CANCELLED = "open", "done", "failed", "in_doubt", "cancelled"
COMPENSATED = "compensated"


@dataclass(slots=True)
class Entry:
    """One question and its answer, as the current execution sees it."""

    key: str
    kind: str
    name: str
    request: str
    request_digest: str
    status: str = OPEN
    write: bool = False
    idempotency_key: str | None = None
    result: str | None = None
    error_kind: str = ""
    error: str = ""
    attempts: int = 0
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    tried_at: datetime | None = None
    due_at: datetime | None = None
    taken: bool = False
    approved_digest: str = ""
    decided_by: str | None = None
    proposal_digest: str = ""
    settles: str | None = None
    compensation: str = ""
    compensates: int | None = None  # the id of the write that it undoes
    child: str | None = None  # the run whose end answers it
    aside: bool = False  # by a repair: asked again, it is a new entry
    step: int = 0
    id: int | None = None

    @property
    def value(self) -> Any:
        return codec.loads(self.result) if self.result is not None else None

    @property
    def past(self) -> bool:
        """Put aside, or closed without an answer when its run ended: it answers nobody any more.

        Children that an entry has started are taken up where they stand, so theirs is not over with its run's end.
        """
        return self.aside or self.status == CANCELLED and self.kind != CHILD


class Ledger(Protocol):
    """The acts of one execution. All but the look-ups commit; each raises Stop(Lost) when the fence has moved.

    `admit` refuses what may not be stored, before anything is called. `try_again` counts an attempt; `failed_try`
    clears `tried_at`, for the try surely changed nothing. `wait` opens a wait, or looks at an open one again, and
    answers it in the same commit if its signal is there or its moment has come. `doubt` of what is surely not
    `under_way` leaves nothing to wait for: a person says how it ends. `to_compensate` is the latest write that is done
    and has a compensation which was not given up; when that is recorded, the same commit makes the write compensated.
    `let_through` counts a call of a tool with a rate, and returns 0.0; or in how many seconds to ask again, then
    `in_line`. What is given to `listen`'s function is shown while the call is under way, until its record or `hush`.
    `start` opens an entry together with the child that answers it; `fan_out` one for many, which `spread` then makes;
    `look` reads those entries again. `take_up` makes children go on that ended with the run, before it was repaired.
    """

    run_id: str
    node: str
    step: int
    actor: str
    operators: list[str]
    entries: dict[str, Entry]

    def open(self, entry: Entry, tried: timedelta | None = None) -> Entry: ...
    def ask(self, entry: Entry, due: timedelta | datetime | None) -> Entry: ...
    def wait(self, entry: Entry, until: timedelta | datetime | None) -> Entry: ...
    def record(self, entry: Entry, value: Any) -> Entry: ...
    def fail(self, entry: Entry, kind: str, message: str) -> Entry: ...
    def try_again(self, entry: Entry, limit: timedelta) -> None: ...
    def failed_try(self, entry: Entry, message: str) -> None: ...
    def unclear(self, entry: Entry, message: str) -> None: ...
    def doubt(self, entry: Entry, message: str, under_way: bool = True) -> None: ...
    def supersede(self, entry: Entry) -> None: ...
    def graph(self, graph: Graph | str) -> Graph: ...
    def start(self, entry: Entry, graph: Graph, tree: Any) -> Entry: ...
    def rejoin(self, entry: Entry) -> Entry: ...
    def fan_out(self, entry: Entry, total: int, at_once: int) -> Entry: ...
    def spread(self, entry: Entry, graph: Graph, trees: list[Any]) -> Entry: ...
    def take_up(self, entry: Entry) -> Entry: ...
    def look(self, keys: list[str]) -> None: ...
    def ends(self, entry: Entry) -> list[ChildEnd]: ...
    def let_through(self, name: str, per_key: str, rate: Rate, in_line: bool) -> float: ...
    def listen(self, entry: Entry) -> Callable[[str], None]: ...
    def hush(self, entry: Entry) -> None: ...
    def admit(self, entry: Entry) -> None: ...
    def may_call(self, entry: Entry | None) -> bool: ...
    def holder(self, idempotency_key: str) -> tuple[str, Entry] | None: ...
    def to_compensate(self) -> Entry | None: ...
    def remark(self, entry: Entry | None, kind: str, body: str) -> None: ...
    def now(self) -> datetime: ...
    def chance(self) -> float: ...
    def uuid(self) -> uuid.UUID: ...
    def secret(self, name: str) -> str: ...
    def put(self, content: bytes, media_type: str) -> codec.BlobRef: ...
    def read(self, blob: codec.BlobRef) -> bytes: ...


OUTCOMES = {
    "approve": "approved",
    "edit": "approved_with_edits",
    "reject": "rejected",
    "respond": "responded",
}


def question(
    ask: Ask,
    name: str,
    payload: Any,
    call: Call | None = None,
    judged: Judgement | None = None,
    **more: Any,
) -> Entry:
    """An interrupt's entry, not opened yet; for a gated call the payload is the bound arguments."""
    about = None
    if call is not None:
        about = {"tool": call.tool.name, "kind": call.tool.kind, "description": call.tool.description, **more}
    request = codec.dumps(ask.request(name, payload, about, judged))
    return Entry(name, INTERRUPT, ask.name or name, request, codec.digest(request))


def effect(call: Call, key: str, idempotency_key: str, decided_by: str | None = None) -> Entry:
    return Entry(
        key,
        EFFECT,
        call.tool.name,
        call.request,
        call.digest,
        write=call.tool.write,
        idempotency_key=idempotency_key,
        decided_by=decided_by,
        compensation=call.tool.compensate.name if call.tool.compensate is not None else "",
    )


def settled(entry: Entry, outcome: str, result: Any) -> dict[str, Any]:
    """What a settlement makes of an entry in doubt, as the columns that change."""
    match outcome:
        case "happened":
            return {"status": DONE, "result": codec.dumps(result)}
        case "not_happened":
            return {"status": OPEN, "tried_at": None, "due_at": None}
        case "give_up":
            return {
                "status": FAILED,
                "error_kind": "permanent",
                "error": entry.error or "given up by a person",
            }
    raise Permanent(f"settle: outcome {outcome!r}; choose happened, not_happened or give_up")
