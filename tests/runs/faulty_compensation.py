"""Undoing what a run did, among the verbs of faulty_verbs.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs.core.compensation import entry_of_compensation
from runs.core.ledger import Entry
from runs.engine.drive import Drive
from runs.engine.ledger import RowLedger
from runs.engine.reclaim import take_from_stuck
from runs.models import LedgerEntry, Run
from runs.testing.driving import answer
from tests.runs.failing import LIMIT, failing
from tests.runs.faulty_rows import claim, claimed
from tests.runs.faulty_verbs import Made, of


def run_of(held: Drive) -> Run:
    return Run.objects.get(pk=held.lease.run_id)


def posted() -> Drive:
    """A worker holds the run, whose one write is done."""
    held = claimed(failing)
    held.most_steps = 1
    held.run()
    return claim(run_of(held))


def undoing() -> Drive:
    """A worker holds the run, and is about to undo its write."""
    held = posted()
    held.lease.fail("permanent", "no")
    return claim(run_of(held))


def compensating(act: Callable[[RowLedger, Entry], Any], opened: bool = True) -> Made:
    """What undoes the write is called next, or has been."""
    held = undoing()
    rows = RowLedger(held.lease, held.rows)
    entry = entry_of_compensation(rows.to_compensate(), rows.run_id)
    if opened:
        rows.open(entry, tried=LIMIT)
    return str(held.lease.run_id), lambda: act(rows, entry)


@of("compensation")
def fail_a_run_that_undoes() -> Made:
    held = posted()
    return str(held.lease.run_id), lambda: held.lease.fail("permanent", "no")


@of("compensation")
def cancel_a_run_that_undoes() -> Made:
    run = run_of(posted())
    return str(run.pk), lambda: run.cancel("ada", "not needed", compensate=True)


@of("compensation")
def take_a_run_that_undoes_from_a_stuck_thread() -> Made:
    held = posted()
    held.lease.attempt = 2
    return str(held.lease.run_id), lambda: take_from_stuck(held.lease, "over its limit")


@of("compensation")
def open_a_compensation() -> Made:
    return compensating(lambda rows, entry: rows.open(entry, tried=LIMIT), opened=False)


@of("compensation")
def record_a_compensation() -> Made:
    return compensating(lambda rows, entry: rows.record(entry, None))


@of("compensation")
def doubt_a_compensation_that_failed() -> Made:
    return compensating(lambda rows, entry: rows.doubt(entry, "refused", under_way=False))


@of("compensation")
def settle_a_compensation() -> Made:
    held = undoing()
    rows = RowLedger(held.lease, held.rows)
    entry = rows.open(entry_of_compensation(rows.to_compensate(), rows.run_id))
    rows.doubt(entry, "refused", under_way=False)
    held.rows = list(LedgerEntry.objects.filter(run=held.lease.run_id, step=2))
    held.run()
    asked = LedgerEntry.objects.get(run=held.lease.run_id, kind="interrupt")
    said = {"verdict": "respond", "payload": {"outcome": "happened", "result": None}}
    return str(held.lease.run_id), lambda: answer(run_of(held), asked, asked.request_value(), said)


@of("compensation")
def end_a_run_whose_writes_are_undone() -> Made:
    held = undoing()
    held.most_steps = 1
    held.run()
    held = claim(run_of(held))
    return str(held.lease.run_id), lambda: held.lease.compensated()
