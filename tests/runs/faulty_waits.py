"""The verbs of waits, each with the rows it needs; beside those of faulty_verbs.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from runs.core import codec
from runs.core.ledger import Entry
from runs.core.waiting import Wait
from runs.engine import clock
from runs.engine.ledger import RowLedger
from runs.models import Run
from tests.runs.faulty_rows import claim, claimed, parked, waiting
from tests.runs.faulty_verbs import Made, of

GO = Wait("go", timeout=timedelta(hours=9))


def claiming(run: Run) -> Made:
    return str(run.pk), lambda: claim(run)


@of("waits")
def send_a_signal_under_a_key() -> Made:
    run = parked(waiting)
    return str(run.pk), lambda: run.signal("go", {"n": 1}, key="evt")


@of("waits")
def claim_that_reads_a_signal_and_parks_again() -> Made:
    run = parked(waiting)
    run.signal("go")
    return claiming(run)


@of("waits")
def claim_that_goes_on_after_a_signal_and_a_timer() -> Made:
    run = parked(waiting)
    run.signal("go")
    clock.AHEAD += timedelta(hours=2, minutes=1)
    return claiming(run)


@of("waits")
def claim_after_a_wait_timed_out() -> Made:
    run = parked(waiting)
    clock.AHEAD += timedelta(hours=9, minutes=1)
    return claiming(run)


def looking(before: Callable[[Run, RowLedger, Entry], Any]) -> Made:
    drive = claimed(waiting)
    rows = RowLedger(drive.lease, drive.rows)
    entry = Entry("go#1", GO.kind, GO.name, GO.request, codec.digest(GO.request))
    before(Run.objects.get(pk=drive.lease.run_id), rows, entry)
    return str(drive.lease.run_id), lambda: rows.wait(entry, GO.until)


@of("waits")
def open_a_wait() -> Made:
    return looking(lambda run, rows, entry: None)


@of("waits")
def open_a_wait_whose_signal_is_there() -> Made:
    return looking(lambda run, rows, entry: run.signal("go"))


@of("waits")
def look_again_when_the_signal_is_there() -> Made:
    def before(run: Run, rows: RowLedger, entry: Entry) -> None:
        rows.wait(entry, GO.until)
        run.signal("go")

    return looking(before)


@of("waits")
def cancel_a_run_with_open_waits_and_an_unread_signal() -> Made:
    run = parked(waiting)
    run.signal("other")
    return str(run.pk), lambda: run.cancel("ada", "not needed")
