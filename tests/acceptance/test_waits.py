"""Timers and signals on an idle installation, by the database's clock, on both databases."""

from __future__ import annotations

from datetime import timedelta
from statistics import median

import pytest

from runs import start
from runs.engine.verify import first_bad_row
from runs.models import LedgerEntry, Run
from tests.acceptance.installation import ended, until, working
from tests.acceptance.naps.graphs import naps
from tests.amounts import IN_FULL
from tests.runs.driving import registered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

ROUNDS = 20 if IN_FULL else 3
LATE = timedelta(seconds=1 if IN_FULL else 15)  # whatever else this machine does


def is_asleep(run: Run, nap: int) -> bool:
    """It is parked in its nap of that number, or already waits for the signal after it."""
    return run.entries.filter(step=nap, status="open", awaited=True).exists()


def test_a_timer_fires_at_its_time_and_never_before(process_environment, tmp_path):
    """E19, S1, S3: the workers are idle whenever a timer ends or a signal comes.

    The signal of every other round is sent while the run still sleeps. The middle one of the delays is compared.
    """
    with working(process_environment, tmp_path, apps="tests.acceptance.naps", workers=3) as work:
        with registered(naps):
            run = start(naps, {"seconds": 1.3, "rounds": ROUNDS})
        for round in range(1, ROUNDS + 1):
            until(lambda nap=round: is_asleep(run, nap), work=work)
            if round % 2:
                until(
                    lambda nap=round: run.entries.filter(step=nap, kind="signal", awaited=True).exists(),
                    work=work,
                )
            run.signal("go", f"round {round}", key=f"round {round}")
        run = ended(run)
    assert (run.status, run.state_at()["said"]) == ("completed", [f"round {n}" for n in range(1, ROUNDS + 1)])
    timers = list(run.entries.filter(kind="timer"))
    assert len(timers) == ROUNDS
    late = [timer.answered_at - timer.due_at for timer in timers]
    assert all(delay >= timedelta() for delay in late), f"one was early: {late}"
    assert median(late) < LATE, late
    slept = [timer.due_at - timer.opened_at for timer in timers]
    assert slept == [timedelta(seconds=1.3)] * ROUNDS
    waits = LedgerEntry.objects.filter(run=run, kind="signal", signal__at__gte=timers[0].opened_at)
    woken = [
        wait.answered_at - wait.signal.at
        for wait in waits.select_related("signal")
        if wait.signal.at > wait.opened_at
    ]
    assert woken and median(woken) < LATE, woken
    assert run.deaths == run.silent == 0
    assert first_bad_row(run) is None
