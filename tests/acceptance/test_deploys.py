"""Deploys with real worker processes whose code differs, on one database."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from runs import start
from runs.engine.verify import first_bad_row
from runs.models import Run
from tests import warm_start
from tests.acceptance.deploys.new.graphs import STOP
from tests.acceptance.deploys.new.graphs import parcel as new
from tests.acceptance.deploys.old.graphs import parcel as old
from tests.acceptance.deploys.parcel import Labelled, Parcel
from tests.acceptance.graphs import patient
from tests.acceptance.installation import begin, diary, driver_of, ended, kill, until, working
from tests.conftest import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

OLD, NEW = "tests.acceptance.deploys.old", "tests.acceptance.deploys.new"
TWO_WORKERS = {"lease_seconds": 15, "workers": 2}
ROUNDS = 90


def parcels(folder: Path, many: int = 1, **state: Any) -> list[Run]:
    return [start(old, Parcel(path=str(folder / "diary"), **state)) for _ in range(many)]


def versions(run: Run) -> list[int]:
    """Under which version each of its nodes was executed."""
    return run.state_at()["by"]


def check(environment: dict[str, str], apps: str) -> tuple[int, dict[str, Any]]:
    """`manage.py checkgraphs --json` with that code."""
    command = [sys.executable, "manage.py", "checkgraphs", "--json"]
    done = warm_start.run(command, cwd=ROOT, env=environment | {"DURABLEWEB_APPS": apps})
    return done.returncode, json.loads(done.stdout)


def test_old_and_new_workers_side_by_side_and_then_the_new_ones_alone(process_environment, tmp_path):
    """R7, R8, A9: while old workers live their runs are theirs; then the runs are migrated. Never a mixture."""
    code, report = check(process_environment, NEW)
    assert code == 0 and report["migratable"] == []
    with ExitStack() as machines:
        old_work = machines.enter_context(working(process_environment, tmp_path, apps=OLD, **TWO_WORKERS))
        (long,) = parcels(tmp_path, rounds=ROUNDS, seconds=1.0)
        until(lambda: diary(tmp_path, f"{long.pk}:1"), work=old_work)
        new_work = machines.enter_context(working(process_environment, tmp_path, apps=NEW, **TWO_WORKERS))
        for run in parcels(tmp_path, 3, rounds=3, seconds=0.2):
            run = ended(run)
            assert (run.status, run.version, versions(run)) == ("completed", 1, [1, 1, 1])
        those_of_the_new_version_are_held_by_nobody(tmp_path)
        assert "are held" not in old_work.log + new_work.log
        old_work.terminate()
        long = ended(long)
        assert (long.status, long.version, len(versions(long))) == ("completed", 2, ROUNDS)
        assert versions(long) == sorted(versions(long)) and set(versions(long)) == {1, 2}
        migrate = long.checkpoints.get(kind="migrate")
        assert (migrate.node, migrate.reason) == ("deliver", "version 1 -> 2")
        assert long.state_at()["label"] == "was at carry"
        assert long.deaths == long.silent == 0
        the_worker_is_killed_in_the_middle_of_a_migration(tmp_path)
        assert "Watchdog" not in new_work.log
    for run in Run.objects.all():
        assert first_bad_row(run) is None


def those_of_the_new_version_are_held_by_nobody(folder: Path) -> None:
    """Its workers are idle, so they have no rows; the old ones do not answer the bells that ring for them."""
    state = Labelled(path=str(folder / "diary"), rounds=1, seconds=0.1, label="new")
    for _ in range(8):
        run = ended(start(new, state))
        assert (run.status, run.version, versions(run)) == ("completed", 2, [2])


def the_worker_is_killed_in_the_middle_of_a_migration(folder: Path) -> None:
    """E6: nothing of it was committed, and another worker begins it anew."""
    (folder / STOP).touch()
    (run,) = parcels(folder, name="cut off")
    until(lambda: diary(folder, "migration:cut off") == 1)
    kill(driver_of(run))
    (folder / STOP).unlink()
    run.refresh_from_db()
    assert (run.version, run.node) == (1, "carry")
    run = ended(run)
    assert (run.status, run.version, versions(run)) == ("completed", 2, [2])
    assert diary(folder, "migration:cut off") == 2
    kinds = list(run.checkpoints.order_by("seq").values_list("kind", flat=True))
    assert kinds == ["start", "claim", "lost", "claim", "migrate", "complete"]
    assert run.silent == 0, "progress clears the suspicion"


def test_a_module_that_cannot_be_imported_holds_its_runs_and_no_others(process_environment, tmp_path):
    """R5: nothing is tried in a loop, and the right code later finds the run as it was."""
    broken = "tests.acceptance.deploys.broken"
    (held,) = parcels(tmp_path)
    code, report = check(process_environment, broken)
    assert code == 1 and report["stranded"][0]["ids"] == [str(held.pk)]
    assert "ModuleNotFoundError" in report["broken"][f"{broken}.graphs"]
    code, report = check(process_environment, "tests.acceptance.deploys.changed")
    assert code == 1 and report["changed"] == [{"graph": "shipment", "version": 1}]
    with working(process_environment, tmp_path, apps=f"tests.acceptance,{broken}", **TWO_WORKERS) as work:
        other = begin(patient, tmp_path, seconds=0.1)
        assert ended(other).status == "completed"
        due = held.wake_at
        held = until(lambda: Run.objects.filter(pk=held.pk, wake_at__gt=due).first(), work=work)
        assert "deploys.broken.graphs are not served" in work.log
    assert (held.status, held.seq, held.fence) == ("created", 0, 0)
