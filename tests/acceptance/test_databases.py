"""Two processes on one SQLite file, and a PostgreSQL server that goes away while a node is at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from runs.engine.verify import first_bad_row
from runs.models import Run
from tests import warm_start
from tests.acceptance.graphs import patient
from tests.acceptance.installation import begin, diary, ended, let_go, until, working
from tests.amounts import THOROUGH
from tests.conftest import ROOT
from tests.postgres import Cluster, PostgresMissing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

RUNS = 1_000 if THOROUGH else 150
LEASE = {"lease_seconds": 60, "workers": 2}  # nothing here waits for its end
KINDS = ["start", "claim", "complete"]  # of a run that one worker drove without a break


@pytest.mark.sqlite_only
def test_two_processes_execute_each_of_a_thousand_runs_once(process_environment, tmp_path):
    """E8"""
    with transaction.atomic():
        begun = {str(begin(patient, tmp_path).pk) for _ in range(RUNS)}
    environment = process_environment | {"DURABLEWEB_APPS": "tests.acceptance"}
    tick = [sys.executable, "manage.py", "tick", "--seconds", "900", "--json"]
    ticks = [
        warm_start.Popen(tick, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [tick.communicate(timeout=1200) for tick in ticks]
    steps = [json.loads(out)["steps"] for out, _ in said]
    assert sum(steps) == RUNS and min(steps) > 0, (steps, said)
    written = [line.split() for line in (tmp_path / "diary").read_text().splitlines()]
    assert len(written) == RUNS
    assert {run for run, _, _ in written} == begun
    assert {int(pid) for _, pid, _ in written} == {tick.pid for tick in ticks}
    assert set(Run.objects.values_list("status", "step", "deaths", "silent")) == {("completed", 1, 0, 0)}


@pytest.mark.postgres_only
def test_a_node_whose_connection_is_cut_commits_on_a_fresh_one(process_environment, tmp_path):
    """E13: the server ends every connection but the test's own, those of bell, pusher and monitor as well."""
    with working(process_environment, tmp_path, **LEASE) as work:
        for folder in (tmp_path / "first", tmp_path / "second"):
            folder.mkdir()
            run = begin(patient, folder, held=1)
            until(lambda run=run, folder=folder: diary(folder, run.pk), work=work)
            assert cut_all_others() >= 2, f"{folder.name} cut"
            let_go(folder, 1)
            run = ended(run)
            assert (run.status, run.step, run.deaths, run.silent) == ("completed", 1, 0, 0)
            assert list(run.checkpoints.order_by("seq").values_list("kind", flat=True)) == KINDS
            assert diary(folder, run.pk) == 1
            assert first_bad_row(run) is None
        assert " ended (" not in work.log, "bell and cluster bear it"


@pytest.mark.postgres_only
def test_a_node_commits_after_the_database_was_restarted(process_environment, tmp_path):
    """E13: a server of its own, which goes as if the power had failed, and comes again at the same address."""
    with own_server() as (server, environment):
        if not server.copy_from(process_environment["DATABASE_URL"]):  # in a fiftieth of the time
            manage(environment, "migrate", "--verbosity", "0")
        with working(environment, tmp_path, **LEASE) as work:
            run = begin_by_command(environment, tmp_path, held=1)
            until(lambda: diary(tmp_path, run), work=work)
            server.stop()
            server.start()
            let_go(tmp_path, 1)
            with psycopg.connect(server.url, autocommit=True) as rows:
                until(lambda: kinds(rows, run)[-1] == "complete", work=work)
                assert kinds(rows, run) == KINDS
                assert diary(tmp_path, run) == 1
                after = begin_by_command(environment, tmp_path)
                until(lambda: kinds(rows, after) == KINDS, work=work)
            assert diary(tmp_path, after) == 1


def cut_all_others() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


@contextmanager
def own_server() -> Iterator[tuple[Cluster, dict[str, str]]]:
    """A durable one, and the environment of processes that use it."""
    try:
        server = Cluster(durable=True)
    except PostgresMissing as error:
        pytest.skip(str(error))
    try:
        server.start()
        server.create_database()
        yield server, {**os.environ, "DATABASE_URL": server.url, "DURABLEWEB_APPS": "tests.acceptance"}
    finally:
        server.remove()


def begin_by_command(environment: dict[str, str], folder: Path, **state: Any) -> str:
    """The id of a new run."""
    given = json.dumps({"path": str(folder / "diary"), **state})
    return json.loads(manage(environment, "start", "patient", "--input", given, "--json"))["id"]


def kinds(rows: psycopg.Connection[Any], run: str) -> list[str]:
    """Of the run's checkpoints, in order."""
    found = rows.execute("SELECT kind FROM runs_checkpoint WHERE run_id = %s ORDER BY seq", [run])
    return [kind for (kind,) in found]


def manage(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    done = warm_start.run(command, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
