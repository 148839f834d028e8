"""What a run that failed or was cancelled still does: it undoes its writes, the latest first, and calls no node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runs.core import effects
from runs.core.ask import Found
from runs.core.commands import Work
from runs.core.compensation import Compensation, entry_of_compensation
from runs.core.errors import EffectFailed
from runs.core.ledger import DONE, EFFECT, FAILED, IN_DOUBT, OPEN, Entry, Ledger
from runs.core.outcomes import Stop, Waits
from runs.core.tool import Tool

KEPT = ("poison", "diverged", "bad_state")  # what such a run did is not known well enough to be undone
NOT_HERE = "the code that would undo it is not here"

ToolOf = Callable[[Entry], Tool | None]  # the tool that made a write, if the code at hand has it


def compensate_one(ledger: Ledger, tool_of: ToolOf) -> Work:
    """Find out what became of writes that are open or in doubt; then undo the latest that is done.

    False when nothing is left to undo. Raises Stop where it has to wait or to be put off.
    """
    yield from _find_out_all(ledger, tool_of)
    done = yield ledger.to_compensate
    if done is None:
        return False
    entry = entry_of_compensation(done, ledger.run_id)
    entry = ledger.entries.get(entry.key, entry)
    made = tool_of(done)
    try:
        if made is None or made.compensate is None:
            yield from _compensate_by_hand(ledger, entry)
        else:
            yield from effects.perform(ledger, Compensation.of(made), entry)
    except EffectFailed:
        pass  # a person has given up on it: what was done stays done, and the earlier ones are undone
    return True


def _find_out_all(ledger: Ledger, tool_of: ToolOf) -> Work:
    unclear = [
        entry
        for entry in ledger.entries.values()
        if entry.kind == EFFECT and entry.write and entry.compensates is None
        if entry.status == IN_DOUBT or (entry.status == OPEN and entry.tried_at is not None)
    ]
    yield from effects.find_out_all(_find_out(ledger, tool_of(entry), entry) for entry in unclear)


def _find_out(ledger: Ledger, made: Tool | None, entry: Entry) -> Work:
    """Did it happen? The provider is asked, or people; it is never sent again, also where its key is honoured."""
    if entry.status == IN_DOUBT or made is None:
        yield from effects.find_out_without_tool(ledger, entry)
    if entry.due_at is not None and (yield ledger.now) < entry.due_at:
        raise Stop(Waits((entry.key,)))
    found = yield from effects.look_up(made, entry)
    if isinstance(found, Found):
        yield partial(ledger.record, entry, found.result)
    elif found is None:
        words = "not found at the provider; the run is ending, so it is not sent again"
        yield partial(ledger.fail, entry, "permanent", words)
    else:
        yield from effects.find_out_without_tool(ledger, entry, "no way to ask the provider gave an answer")


def _compensate_by_hand(ledger: Ledger, entry: Entry) -> Work:
    """Nothing here can undo it: a person does, or gives up."""
    if entry.status == DONE:
        return
    if entry.status == FAILED:
        raise EffectFailed(entry.key, entry.error, entry.error_kind)
    if entry.key not in ledger.entries:
        yield partial(ledger.open, entry)
    if entry.status == OPEN and entry.tried_at is None:
        yield partial(ledger.doubt, entry, NOT_HERE, under_way=False)
    yield from effects.find_out_without_tool(ledger, entry, NOT_HERE)
