"""A worker that is stopped in the middle of a call and wakes up when another one has its run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from runs import start
from runs.models import Remark
from tests import warm_start
from tests.acceptance.graphs import stopped
from tests.acceptance.installation import PATIENCE_SECONDS, until
from tests.conftest import ROOT
from tests.runs.driving import drive, registered

# On SQLite a stopped process may hold, or be handed, the file's write lock; then nobody writes until it wakes or dies.
pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only, pytest.mark.django_db(transaction=True)]


def test_a_late_result_is_evidence_and_the_effect_happens_once(process_environment, tmp_path):
    """E20: SIGSTOP between intent and call until another worker has taken the run, then SIGCONT."""
    short = {"DURABLEWEB_APPS": "tests.acceptance", "DURABLEWEB_LEASE_SECONDS": "15"}  # its end is waited for
    environment = process_environment | short
    deposits = Path(tmp_path, "deposits")
    run = start(stopped, {"path": str(deposits)})
    first = warm_start.Popen(
        [sys.executable, "manage.py", "tick", "--seconds", "60"], cwd=ROOT, env=environment
    )
    with registered(stopped):  # this process is the second worker: it is there at once
        try:
            until(lambda: _is_stopped(first.pid))
            until(lambda: drive(run, "second") is not None)
            assert run.status == "waiting"
            assert not deposits.exists(), "while the earlier call may be under way, nobody makes another"
            os.kill(first.pid, signal.SIGCONT)
            assert first.wait(PATIENCE_SECONDS) == 0
            until(lambda: drive(run, "second") is not None)
        finally:
            first.kill()
            first.wait()
    assert run.status == "completed"
    assert deposits.read_text().count("\n") == 1
    assert run.state_at()["result"] == "found", "the outcome is what the provider says, not the late result"
    assert Remark.objects.get(run=run).kind == "late_result"
    assert {"lost", "wait", "wake"} <= {*_kinds(run)}


def _is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def _kinds(run) -> list[str]:
    return list(run.checkpoints.order_by("seq").values_list("kind", flat=True))
