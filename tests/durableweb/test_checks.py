"""Settings that break a promise or open the door are refused by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

from durableweb import checks
from runs.command_line import OneLineCommand
from tests.conftest import ROOT

OURS = {"approvals", "durableweb", "runs"}


@pytest.fixture
def engine(settings):
    """engine(lease_seconds=10) changes the engine's settings."""

    def change(**changes):
        settings.DURABLEWEB = settings.DURABLEWEB | changes

    return change


def ids(problems):
    return [problem.id for problem in problems]


@pytest.mark.smoke
@pytest.mark.django_db  # Django's own checks of JSON fields ask the database
def test_these_settings_have_no_problem():
    from django.core.checks import run_checks

    assert [problem for problem in run_checks() if problem.id.startswith("durableweb.E")] == []


def test_a_command_makes_each_check_of_ours_that_needs_neither_pages_nor_a_database():
    from django.core.checks.registry import registry

    ours = [check for check in registry.registered_checks if check.__module__.split(".")[0] in OURS]
    assert len(ours) > 8
    made, left = set(OneLineCommand.requires_system_checks), {"admin", "database"}
    assert {check.__qualname__ for check in ours if not {*check.tags} & (made | left)} == set()


@pytest.mark.django_db(transaction=True)
def test_a_command_loads_neither_pages_nor_what_most_commands_never_use(process_environment):
    """Each of these takes as long as a tenth to a third of the start, for every command and worker."""
    program = (
        "import sys; sys.argv = ['manage.py', 'list']; import manage; manage.main(); print(*sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=process_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"approvals.models", "examples.graphs", "runs.command_line"} <= loaded
    assert (
        loaded & {"durableweb.urls", "unfold.admin", "httpx", "psycopg", "uvicorn", "fido2.server"} == set()
    )


def test_a_heartbeat_above_a_third_of_the_lease_is_an_error(engine):
    """E10."""
    engine(lease_seconds=60, heartbeat_seconds=20.5)
    (problem,) = checks.lease_and_heartbeat()
    assert problem.id == "durableweb.E001"
    assert "20.5 s" in problem.msg and "DURABLEWEB_HEARTBEAT_SECONDS to 20" in problem.hint


@pytest.mark.parametrize("lease", [1, 7, 10, 60, 3600])
def test_exactly_a_third_of_any_lease_is_fine(engine, lease):
    engine(lease_seconds=lease, heartbeat_seconds=lease / 3)
    assert checks.lease_and_heartbeat() == []


@pytest.mark.parametrize(("lease", "expected"), [(29.9, ["durableweb.E002"]), (30, [])])
def test_a_short_lease_on_sqlite_is_an_error_outside_tests(engine, settings, monkeypatch, lease, expected):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "durableweb.sqlite")
    engine(lease_seconds=lease, heartbeat_seconds=lease / 3)
    assert checks.lease_and_heartbeat() == []  # tests may
    settings.TESTING = False
    assert ids(checks.lease_and_heartbeat()) == expected


def test_a_short_lease_on_postgresql_is_fine(engine, settings, monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    settings.TESTING = False
    engine(lease_seconds=5, heartbeat_seconds=1)
    assert checks.lease_and_heartbeat() == []


def test_one_worker_process_is_an_error(engine):
    engine(workers=1)
    assert ids(checks.lease_and_heartbeat()) == ["durableweb.E003"]


def test_a_value_limit_below_the_blob_size_is_an_error(engine):
    engine(value_limit_bytes=1024, blob_bytes=2048)
    assert ids(checks.lease_and_heartbeat()) == ["durableweb.E004"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max_attempts", 0),
        ("ack_failures", False),
        ("save_limit", 250),
        ("scheduler", True),
        ("catch_up", True),
        ("bulk", 10),
    ],
)
def test_each_q2_setting_that_breaks_a_promise_is_named(settings, name, wrong):
    settings.Q_CLUSTER = settings.Q_CLUSTER | {name: wrong}
    (problem,) = checks.bells()
    assert problem.id == "durableweb.E010" and f"Q_CLUSTER[{name!r}] is {wrong!r}" in problem.msg


def test_a_q2_setting_left_to_its_default_is_named_too(settings):
    settings.Q_CLUSTER = {name: value for name, value in settings.Q_CLUSTER.items() if name != "scheduler"}
    assert ids(checks.bells()) == ["durableweb.E010"]


@pytest.mark.parametrize(
    "wrong", [{"timeout": 60}, {"timeout": None}, {"retry": 60}, {"timeout": 90_000, "retry": 90_000}]
)
def test_q2_may_neither_kill_nor_double_a_long_shift(settings, wrong):
    settings.Q_CLUSTER = settings.Q_CLUSTER | wrong
    assert ids(checks.bells()) == ["durableweb.E011"]


def test_q2_has_as_many_workers_as_shifts_are_counted_by(settings):
    settings.Q_CLUSTER = settings.Q_CLUSTER | {"workers": 7}
    assert ids(checks.bells()) == ["durableweb.E012"]


def test_redis_without_its_packages_is_an_error(settings, monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert checks.redis_packages() == []
    settings.REDIS_URL = "redis://localhost"
    (problem,) = checks.redis_packages()
    assert problem.id == "durableweb.E013" and "requirements-redis.txt" in problem.hint


def test_a_missing_secret_key_is_an_error(settings):
    assert checks.secret_key() == []
    settings.SECRET_KEY = ""
    (problem,) = checks.secret_key()
    assert problem.id == "durableweb.E020" and "DURABLEWEB_SECRET_KEY" in problem.hint


def test_debug_for_other_hosts_than_loopback_is_an_error(settings):
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    assert checks.debug_stays_at_home() == []
    settings.ALLOWED_HOSTS = ["localhost", "durableweb.example"]
    (problem,) = checks.debug_stays_at_home()
    assert problem.id == "durableweb.E021" and "durableweb.example" in problem.msg
    settings.DEBUG = False
    assert checks.debug_stays_at_home() == []


def test_test_settings_are_no_production_settings(settings):
    assert ids(checks.no_testing_in_production()) == ["durableweb.W022"]
    settings.TESTING = False
    assert checks.no_testing_in_production() == []


def test_a_graph_module_that_does_not_import_is_named(monkeypatch):
    from runs import registry

    monkeypatch.setattr(registry, "broken", {"shop.graphs": "ImportError: no module named till"})
    (problem,) = checks.graph_modules()
    assert problem.id == "durableweb.W030" and "shop.graphs" in problem.msg


def test_every_check_is_registered():
    from django.core.checks.registry import registry

    everything = registry.get_checks(include_deployment_checks=True)
    ours = [check for check in everything if check.__module__ == "durableweb.checks"]
    assert len(ours) == 7
    assert settings.SILENCED_SYSTEM_CHECKS == ["security.W005", "security.W021"]
