"""Undoing under the kit: a kill at every boundary, and rules that are left out."""

from __future__ import annotations

import pytest

from runs import Graph, tool
from runs.engine.ledger import RowLedger
from runs.models import LedgerEntry, Run
from runs.testing import CrashFound, crash_everywhere, drive
from tests.amounts import KILLS
from tests.runs.driving import kills_of
from tests.runs.failing import LIMIT, failing, take_back
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

cancelled = Graph("cancelled-in-the-middle", state=Log, operators="ops")


@tool(kind="write", limit=LIMIT, compensate=take_back)
def post_and_cancel(run_id: str) -> str:
    """Somebody cancels the run while this call is under way."""
    Run.objects.get(pk=run_id).cancel("olga", "changed our minds", compensate=True)
    return f"posted by {run_id}"


@cancelled.node
def publish(run, state):
    state.log.append(run.call(post_and_cancel, run_id=run.id))


def test_no_kill_undoes_twice_or_leaves_anything_undone():
    """E15, with what comes after a failure."""
    report = crash_everywhere(failing, {}, kills=KILLS)
    assert (report.status, report.effects) == ("failed", {"post_for_now": 1, "take_back": 1})
    assert {"committed compensate", "committed fail"} < set(report.boundaries)
    assert report.kills == kills_of(report)
    assert report.in_doubt > 0 or KILLS


def test_no_kill_undoes_twice_after_a_cancel_in_the_middle_of_a_node():
    """R1: also what was under way is undone, once it is known that it happened."""
    report = crash_everywhere(cancelled, {}, kills=KILLS)
    assert report.status == "cancelled"
    assert report.effects == {"post_and_cancel": 1, "take_back": 1}


@pytest.mark.once  # a proof
def test_without_an_intent_a_kill_is_found_to_undo_twice(monkeypatch):
    open_entry, record = RowLedger.open, RowLedger.record

    def open_late(ledger, entry, tried=None):
        if entry.compensates is None:
            return open_entry(ledger, entry, tried)
        entry.tried_at = ledger.lease.now()
        return entry

    def record_both(ledger, entry, value):
        if entry.compensates is not None and entry.id is None:
            open_entry(ledger, entry)
        return record(ledger, entry, value)

    monkeypatch.setattr(RowLedger, "open", open_late)
    monkeypatch.setattr(RowLedger, "record", record_both)
    with pytest.raises(CrashFound, match="compensate:1:post_for_now.* was called 2 times"):
        crash_everywhere(failing, {})


@pytest.mark.once  # a proof
def test_a_compensation_that_is_recorded_beside_what_it_undoes_is_found_by_the_trail(monkeypatch):
    """Proof that both change in one commit: the trail is looked at after each kill."""
    change = RowLedger._changed

    def apart(ledger, entry, changes, spoke):
        if entry.compensates is not None and changes.get("status") == "done":
            LedgerEntry.objects.filter(pk=entry.compensates).update(status="compensated")
            from runs.engine.boundaries import boundary

            boundary("torn")
            LedgerEntry.objects.filter(pk=entry.compensates).update(status="done")
        return change(ledger, entry, changes, spoke)

    assert drive(failing, {}).status == "failed"
    monkeypatch.setattr(RowLedger, "_changed", apart)
    with pytest.raises(CrashFound, match="'torn'.*trail does not hold"):
        crash_everywhere(failing, {})
