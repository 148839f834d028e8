"""Rates and texts under way among the verbs of faulty_verbs.py."""

from __future__ import annotations

from functools import partial

from runs.core import ledger
from runs.core.ledger import Entry
from runs.core.rate import Rate
from runs.engine.drive import Drive
from runs.engine.ledger import RowLedger
from runs.engine.saying import rounds
from tests.runs.faulty_rows import claimed, effect, look, sending
from tests.runs.faulty_verbs import Made, of


def speaking(drive: Drive, entry: Entry) -> RowLedger:
    """What the call has said so far is in a row."""
    rows = RowLedger(drive.lease, drive.rows)
    rows.listen(entry)("once upon a time")
    rounds.write()
    return rows


def read(drive: Drive) -> Entry:
    return ledger.effect(look.bind(text="a"), "look#1", f"{drive.lease.run_id}:1:look#1")


@of("rates")
def be_let_through() -> Made:
    drive = claimed(sending)
    ask = partial(RowLedger(drive.lease, drive.rows).let_through, "post", "", Rate("1000/s"), in_line=False)
    return str(drive.lease.run_id), ask


@of("rates")
def wait_in_line() -> Made:
    drive = claimed(sending)
    return str(drive.lease.run_id), lambda: drive.lease.line_up(60.0, "post, 10/m")


@of("rates")
def record_a_read_that_showed_its_text() -> Made:
    drive = claimed(sending)
    entry = read(drive)
    return str(drive.lease.run_id), partial(speaking(drive, entry).record, entry, "said")


@of("rates")
def record_a_write_that_showed_its_text() -> Made:
    drive = claimed(sending)
    entry = RowLedger(drive.lease, drive.rows).open(effect(drive.lease))
    return str(drive.lease.run_id), partial(speaking(drive, entry).record, entry, "said")


@of("rates")
def hush_a_call_that_failed() -> Made:
    drive = claimed(sending)
    entry = read(drive)
    return str(drive.lease.run_id), partial(speaking(drive, entry).hush, entry)
