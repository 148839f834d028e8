"""A write is called only while the lease covers it; what was not called is no attempt of the tool's."""

from __future__ import annotations

from runs.core.commands import do_at_once
from runs.core.context import Run
from runs.core.errors import Ambiguous
from runs.core.memory_ledger import MemoryLedger
from runs.core.outcomes import LetsGo, Stop
from runs.core.questions import Questions
from runs.core.retry import Retry
from runs.core.tool import tool


class ShortLeases(MemoryLedger):
    """The lease covers a call only where `covered` says so, in turn; then always."""

    def __init__(self, *covered: bool) -> None:
        super().__init__()
        self.covered = list(covered)

    def may_call(self, entry) -> bool:
        return self.covered.pop(0) if self.covered else True


calls: list[str] = []


@tool(kind="write", honours_key=True, retry=Retry(attempts=2, first=0))
def post(text: str, *, idempotency_key: str) -> str:
    calls.append(idempotency_key)
    if len(calls) == 1:
        raise Ambiguous("no answer")
    return "posted"


def claimed_until_done(ledger: ShortLeases) -> tuple[object, int]:
    """What the call returned, and how many claims let go of the run before."""
    calls.clear()
    for claims in range(10):
        try:
            return Run(Questions(ledger), do_at_once).call(post, text="x"), claims
        except Stop as stop:
            assert isinstance(stop.outcome, LetsGo)
            (entry,) = ledger.entries.values()
            assert (entry.tried_at is None) == (not calls), "it says whether something may have been sent"
    raise AssertionError("it never came to an end")


def test_a_lease_that_is_renewed_in_between_covers_the_second_intent():
    ledger = ShortLeases(False, True)
    assert claimed_until_done(ledger) == ("posted", 0)
    assert (len(calls), next(iter(ledger.entries.values())).attempts) == (2, 2)


def test_many_claims_with_short_leases_use_up_no_attempt():
    """A slow machine lost its leases so often that a call was given up which had been made once."""
    ledger = ShortLeases(*[False] * 6, True, *[False] * 4)
    assert claimed_until_done(ledger) == ("posted", 5)
    assert (len(calls), len(set(calls))) == (2, 1)
    assert next(iter(ledger.entries.values())).attempts == 2
