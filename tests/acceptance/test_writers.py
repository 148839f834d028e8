"""Eight processes at once on one SQLite file, with the verbs and rows of the engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from runs.engine.verify import first_bad_row
from runs.models import Run
from tests import warm_start
from tests.amounts import IN_CI, IN_FULL
from tests.conftest import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance, pytest.mark.sqlite_only]

WRITERS = 8
SECONDS = 60 if IN_FULL else 8 if IN_CI else 2
LONGEST_WAIT_SECONDS = 2.0


def test_eight_writers_hear_of_no_lock_and_wait_no_longer_than_their_turn_takes(
    process_environment, tmp_path
):
    """E16: the limit is 2 s; where one turn takes so long that eight do not fit, twice the queue."""
    environment = process_environment | {
        "DURABLEWEB_APPS": "tests.acceptance",
        "DURABLEWEB_LEASE_SECONDS": "60",
    }
    command = [sys.executable, "-m", "tests.acceptance.writer", str(tmp_path), str(SECONDS)]
    writers = [
        warm_start.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(WRITERS)
    ]
    said = [writer.communicate() for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS, said
    for _, logged in said:
        assert "locked" not in logged and "did not take a commit" not in logged, logged
    told = [json.loads(printed) for printed, _ in said]
    for end in ("completed", "cancelled"):
        assert min(one[end] for one in told) > 0, told
        assert Run.objects.filter(status=end).count() == sum(one[end] for one in told)
    assert Run.objects.exclude(status__in=("completed", "cancelled")).count() == 0
    queue = WRITERS * max(one["longest_hold"] for one in told)
    assert max(one["longest_wait"] for one in told) < max(LONGEST_WAIT_SECONDS, 2 * queue), told
    for run in Run.objects.order_by("pk")[::10]:
        assert first_bad_row(run) is None
