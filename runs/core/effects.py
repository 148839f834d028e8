"""How one call is made at most once: intent, call, result, and what to do when nobody knows (DESIGN section 6)."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable
from functools import partial

from runs.core import codec
from runs.core.ask import Ask, Found
from runs.core.commands import Invoke, Pause, Work
from runs.core.compensation import Compensation
from runs.core.errors import Ambiguous, CodecError, EffectFailed, Permanent, Transient
from runs.core.ledger import DONE, FAILED, IN_DOUBT, OPEN, Entry, Ledger, question
from runs.core.mapping import classify
from runs.core.outcomes import Fails, LetsGo, LinesUp, PutsOff, Stop, Waits
from runs.core.tool import Tool

IN_PLACE_SECONDS = 5.0
UNKNOWN = object()

LOOK_THERE = "It was sent, and no answer came back. Look at the provider, then say what happened."
ANSWERED = (
    "It was sent and answered, but its answer could not be kept. Say that it happened, and what it returned."
)
BY_HAND = (
    "It would undo an earlier call of a run that ends, and did not succeed. Undo that call by hand and say that it "
    "happened; or say that it did not, and it is tried once more; or give up, and what was done stays done."
)
GIVEN_UP = "It was not done, and its node had gone on without it."
SETTLEMENT = {
    "type": "object",
    "properties": {
        "outcome": {
            "enum": ["happened", "not_happened", "give_up"],
            "description": "It happened; it did not and may be called again; or give up on it.",
        },
        "result": {"description": "What the call returned, if it happened."},
    },
    "required": ["outcome"],
    "additionalProperties": False,
}


def perform(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
    """Bring one effect to its outcome: the recorded result, or EffectFailed, or a Stop."""
    while True:
        if entry.status == DONE:
            return entry.value
        if entry.status == FAILED:
            raise EffectFailed(entry.key, entry.error, entry.error_kind)
        if entry.status == IN_DOUBT:
            yield from _ask_operators(ledger, entry)
        if entry.tried_at is not None and not tool.honours_key:
            if (yield from _resolve(ledger, tool, entry)):
                continue
        yield from _try(ledger, tool, entry)


def _try(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
    """One try: after it the entry is done, failed, in doubt, or to be tried again; or the run is put off.

    Where the provider honours the key an earlier try may have happened (`unsure`): no later one makes that unsaid.
    """
    if tool.rate is not None:
        yield from _wait_in_line(ledger, tool, entry)
    unsure = tool.write and tool.honours_key and entry.tried_at is not None
    if tool.write:
        yield from _intend(ledger, tool, entry, unsure)
    else:
        entry.attempts += 1
        entry.asked_at = entry.asked_at or ledger.now()
    try:
        value = yield _invocation(ledger, tool, entry)
    except Exception as error:
        if "show_text" in tool.injected:
            yield partial(ledger.hush, entry)
        yield from _after_error(ledger, tool, entry, error, unsure)
        return
    try:
        yield partial(ledger.record, entry, value)
    except CodecError as error:
        if isinstance(tool, Compensation):
            yield partial(ledger.record, entry, None)  # nobody needs what it returned
            return
        if not tool.write:
            words = f"{tool.name}: the result cannot be stored: {error}"
            yield partial(ledger.fail, entry, "permanent", words)
            return
        words = f"{tool.name}: it was called and answered, but the result cannot be stored: {error}"
        yield partial(ledger.doubt, entry, words, under_way=False)
        raise Stop(
            Fails("permanent", f"{entry.key}: {words}")
        ) from error  # it happened: nothing may go around it


def _wait_in_line(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
    """Count this call among those of all workers, or wait until there is room: before it is intended, so no attempt."""
    rate, in_line = tool.rate, False
    name, per_key = rate.name or tool.name, rate.key_of(tool.unpack(entry.request))
    while wait := (yield partial(ledger.let_through, name, per_key, rate, in_line)):
        if wait > IN_PLACE_SECONDS:
            raise Stop(LinesUp(wait, f"{name}, {rate.often}"))
        yield Pause(wait)
        in_line = True


def _intend(ledger: Ledger, tool: Tool, entry: Entry, unsure: bool) -> Work:
    """Commit what is about to be called, once more if that took so long that the lease no longer covers the call."""
    for once_more in (True, False):
        try:
            if entry.id is None and entry.key not in ledger.entries:
                yield partial(ledger.open, entry, tool.limit)
            else:
                yield partial(ledger.try_again, entry, tool.limit)
            if (yield partial(ledger.may_call, entry)):
                return
        except CancelledError:
            if entry.tried_at is not None and entry.key in ledger.entries:
                yield from _call_off(ledger, entry, unsure, "it was cancelled before it was called")
            raise
        if once_more:
            entry.attempts -= 1  # it is not called: no attempt of the tool's
    yield from _call_off(ledger, entry, unsure, "the lease was too short to begin the call")
    raise Stop(LetsGo(f"the lease was too short to call {tool.name}"))


def _call_off(ledger: Ledger, entry: Entry, unsure: bool, words: str) -> Work:
    """It was intended, and is not called after all."""
    entry.attempts -= 1
    yield partial(ledger.unclear if unsure else ledger.failed_try, entry, words)


def _invocation(ledger: Ledger, tool: Tool, entry: Entry) -> Invoke:
    arguments = tool.unpack(entry.request)
    for given in (arguments, *(value for value in arguments.values() if isinstance(value, dict))):
        for name, value in given.items():
            if isinstance(value, codec.SecretRef):
                given[name] = ledger.secret(value.name)
    seconds = tool.limit.total_seconds()
    if "idempotency_key" in tool.injected:
        arguments["idempotency_key"] = entry.idempotency_key
    if "timeout" in tool.injected:
        arguments["timeout"] = seconds
    if "show_text" in tool.injected:
        arguments["show_text"] = ledger.listen(entry)
    return Invoke(tool.fn, arguments, seconds=seconds, write=tool.write)


def _after_error(ledger: Ledger, tool: Tool, entry: Entry, raised: Exception, unsure: bool) -> Work:
    error = classify(raised)
    words = f"{type(raised).__name__}: {raised}"
    if isinstance(tool, Compensation) and not isinstance(error, (Transient, Permanent, Ambiguous)):
        error = Ambiguous(words)  # no node is there whose policy it could be
    if isinstance(error, Permanent):
        yield from _fail(ledger, tool, entry, "permanent", words, unsure)
        return
    if isinstance(error, Ambiguous) and tool.write and not tool.honours_key:
        yield partial(ledger.unclear, entry, words)
        return  # tried_at stays: the next round resolves it
    if not isinstance(error, (Transient, Ambiguous)):
        raise raised  # the node's policy; a write keeps its tried_at, so its outcome is asked for first
    decision = tool.retry.decide(entry.attempts, error, ledger.chance())
    ambiguous = isinstance(error, Ambiguous) and tool.write
    if not decision.again:
        if ambiguous:
            yield partial(ledger.doubt, entry, words)
        else:
            yield from _fail(ledger, tool, entry, "exhausted", f"{words} ({decision.reason})", unsure)
        return
    if not (ambiguous or unsure):
        in_place = decision.delay <= IN_PLACE_SECONDS
        if tool.write or not in_place:
            yield partial(ledger.failed_try, entry, words)
    if decision.delay <= IN_PLACE_SECONDS:
        yield Pause(decision.delay)
    else:
        raise Stop(PutsOff(decision.delay, words, counts=False))


def _resolve(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
    """Find out what became of an earlier call. True when the entry has moved on, False when it may be called."""
    if entry.due_at is not None and (yield ledger.now) < entry.due_at:
        raise Stop(
            Waits((entry.key,))
        )  # until then the earlier call may be under way: "not found" means nothing
    found = yield from look_up(tool, entry)
    if isinstance(found, Found):
        yield partial(ledger.record, entry, found.result)
        return True
    if found is None and entry.attempts < tool.retry.attempts:
        return False
    if found is None:
        reason = f"not found at the provider after {entry.attempts} of {tool.retry.attempts} attempts"
        yield from _fail(ledger, tool, entry, "exhausted", reason)
        return True
    said = entry.error or "the worker was gone before the answer came"
    yield partial(
        ledger.doubt, entry, f"sent, outcome unknown ({said}); no way to ask the provider gave an answer"
    )
    return True


def look_up(tool: Tool, entry: Entry) -> Work:
    """What the provider says of an earlier call: Found(result), None if it surely was not done, or UNKNOWN."""
    if tool.reconcile is None:
        return UNKNOWN
    try:
        return (yield Invoke(tool.reconcile, positional=(entry.idempotency_key, tool.unpack(entry.request))))
    except Exception:
        return UNKNOWN


def _fail(ledger: Ledger, tool: Tool, entry: Entry, kind: str, words: str, unsure: bool = False) -> Work:
    """It failed for good. What was to undo something is not left at that: a person says how it ends."""
    if unsure:
        yield partial(
            ledger.doubt, entry, f"An earlier try may have happened, though the last one failed: {words}"
        )
    elif isinstance(tool, Compensation):
        yield partial(ledger.doubt, entry, f"It failed for good: {words}", under_way=False)
    else:
        yield partial(ledger.fail, entry, kind, words)


def find_out(ledger: Ledger, tool: Tool, entry: Entry) -> Work:
    """How a write ends that its node has gone on without. What surely was not done is not made any more."""
    while entry.status in (OPEN, IN_DOUBT):
        if entry.status == IN_DOUBT:
            yield from _ask_operators(ledger, entry)
        if entry.tried_at is not None and tool.honours_key:
            yield from perform(ledger, tool, entry)
        elif entry.tried_at is None or not (yield from _resolve(ledger, tool, entry)):
            yield from _fail(ledger, tool, entry, "permanent", GIVEN_UP)


def find_out_all(each: Iterable[Work]) -> Work:
    """How several writes end: each is asked for before it waits for any. That one failed stands in its entry."""
    awaited: list[str] = []
    for finding in each:
        try:
            yield from finding
        except EffectFailed:
            pass
        except Stop as stop:
            if not isinstance(stop.outcome, Waits):
                raise
            awaited += stop.outcome.keys
    if awaited:
        raise Stop(Waits(tuple(awaited)))


def find_out_without_tool(
    ledger: Ledger, entry: Entry, why: str = "the code that sent it is not here to find out"
) -> Work:
    """A write whose tool cannot say: only people know what became of it. Stops until they have said so."""
    if entry.status == OPEN:
        if entry.due_at is not None and (yield ledger.now) < entry.due_at:
            raise Stop(Waits((entry.key,)))
        said = entry.error or "the worker was gone before the answer came"
        yield partial(ledger.doubt, entry, f"sent, outcome unknown ({said}); {why}")
    yield from _ask_operators(ledger, entry)


def _ask_operators(ledger: Ledger, entry: Entry) -> Work:
    """An entry in doubt is a question `<key>!` to the graph's operators; its answer settles the entry."""
    key, number = f"{entry.key}!", 1
    while (asked := ledger.entries.get(key)) is not None and asked.status != OPEN:
        number += 1
        key = f"{entry.key}!{number}"
    if asked is None:
        ask = Ask(
            f"Did {entry.name} happen?",
            reviewers=ledger.operators,
            verdicts=("respond",),
            schema=SETTLEMENT,
            risk="high",
            why=_why(entry),
        )
        asked = question(ask, key, {"outcome": "happened", "result": None})
        request = codec.loads(asked.request)
        request["settles"] = {
            "key": entry.key,
            "tool": entry.name,
            "request": codec.decode(entry.request),
            "idempotency_key": entry.idempotency_key,
            "error": entry.error,
        }
        asked.request = codec.dumps(request)
        asked.request_digest = codec.digest(asked.request)
        asked.settles = entry.key
        yield partial(ledger.ask, asked, None)
    raise Stop(Waits((key,)))


def _why(entry: Entry) -> str:
    if entry.tried_at is not None:
        return LOOK_THERE
    return ANSWERED if entry.compensates is None else BY_HAND
