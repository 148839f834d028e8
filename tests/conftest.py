"""The installation that tests run in, and the people who appear in them."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest

from tests.amounts import IN_CI, ON_POSTGRES, drawn_of_list, is_drawn_elsewhere
from tests.places import PLACES, is_of_once_only

ROOT = Path(__file__).resolve().parent.parent

# Before Django reads its settings. Workers of pytest-xdist and child processes inherit all of it.
if os.environ.get("DURABLEWEB_TESTING") != "1":
    _home = tempfile.mkdtemp(prefix="durableweb-test-")
    atexit.register(shutil.rmtree, _home, ignore_errors=True)
    for _name in [name for name in os.environ if name.startswith(("DURABLEWEB_", "REDIS_URL"))]:
        del os.environ[_name]  # the developer's own installation
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "durableweb.settings",
        "DURABLEWEB_TESTING": "1",
        "DURABLEWEB_HOME": _home,
        "DURABLEWEB_SECRET_KEY": "only for tests: jq9hS0v2mXc7R4tLz8wYb3nKd5fGpEaU6iQoTrHs",
        "DURABLEWEB_ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
        "DURABLEWEB_LEASE_SECONDS": "60",
        "DURABLEWEB_ARCHIVE_AFTER_DAYS": "0",  # whose clock is moved by months does not mean that
    }

elif _worker := os.environ.get("PYTEST_XDIST_WORKER"):  # a database file, blobs and mail of its own
    os.environ["DJANGO_SETTINGS_MODULE"] = "durableweb.settings"
    os.environ["DURABLEWEB_HOME"] = os.path.join(os.environ["DURABLEWEB_HOME"], _worker)
    os.makedirs(os.environ["DURABLEWEB_HOME"], mode=0o700, exist_ok=True)


def pytest_configure(config: pytest.Config) -> None:
    hands_out = config.getoption("numprocesses", None) and not config.getoption("collectonly")
    if hands_out:  # its workers load and test; none may read the settings before it has a home of its own
        del os.environ["DJANGO_SETTINGS_MODULE"]
        return
    import django

    django.setup()  # pytest-django reads a settings module named in pyproject.toml before this file could speak


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other database: deselected, for a skip would be a failure in CI."""
    for mark, places in PLACES.items():
        for item in items:
            if item.get_closest_marker(mark) and not item.nodeid.startswith(places):
                raise pytest.UsageError(f"{item.nodeid} is marked {mark}: move it to {' or '.join(places)}.")
    if ON_POSTGRES:
        wanted = [item for item in items if not item.get_closest_marker("postgres_only")]
        other = [item for item in wanted if item.get_closest_marker("sqlite_only") or is_once_only(item)]
    else:
        other = [item for item in items if item.get_closest_marker("postgres_only")]
    other += [item for item in items if is_drawn_for_the_other(item)]
    left_out = set(other)
    other += not_drawn_of_lists([item for item in items if item not in left_out])
    if other:
        config.hook.pytest_deselected(items=other)
        left_out = set(other)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now stays to the end: to look through it for garbage again and again takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def is_once_only(item: pytest.Item) -> bool:
    """Browser tests, and those for which the other database changes nothing."""
    marked = any(item.get_closest_marker(name) for name in ("once", "browser"))
    return marked or is_of_once_only(os.path.relpath(item.path, ROOT))


def is_drawn_for_the_other(item: pytest.Item) -> bool:
    """In a developer's run: a test that either database will do for."""
    of_one = any(item.get_closest_marker(name) for name in ("sqlite_only", "postgres_only"))
    return not (of_one or is_once_only(item)) and is_drawn_elsewhere(item.nodeid)


def not_drawn_of_lists(items: list[pytest.Item]) -> list[pytest.Item]:
    """In a developer's run: most cases of those tests that try a long list of what is alike."""
    lists: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long_list"):
            lists.setdefault(item.nodeid.partition("[")[0], []).append(item)
    drawn = {item for test, cases in lists.items() for item in drawn_of_list(test, cases)}
    return [item for cases in lists.values() for item in cases if item not in drawn]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and with CI=true nothing may be: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.nodeid} was skipped, and with CI=true nothing may be: {report.longrepr}"
        )


@pytest.fixture(scope="session")
def django_db_modify_db_settings_xdist_suffix(request: pytest.FixtureRequest) -> None:
    """On SQLite each worker of pytest-xdist has a home of its own; the name stays as child processes expect it."""
    from pytest_django.fixtures import _set_suffix_to_test_databases

    worker = getattr(request.config, "workerinput", {}).get("workerid")
    if worker and ON_POSTGRES:
        _set_suffix_to_test_databases(suffix=worker)


# A database with all tables, made once for many processes: a file, or a database of the same server. Each of them
# begins with a copy, and migrates that: it takes a fifth of the time.
COPY_OF = os.environ.get("TEST_COPY_OF")


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    return django_db_keepdb or bool(COPY_OF and not ON_POSTGRES)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    from django.db import connections

    ours = connections.settings["default"]
    if COPY_OF and ON_POSTGRES:
        ours["TEST"]["TEMPLATE"] = COPY_OF
    elif COPY_OF:
        shutil.copyfile(COPY_OF, ours["TEST"]["NAME"])


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    from django.test import override_settings

    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


KEPT = {"django_migrations", "django_content_type", "auth_permission"}  # what migrate made, not a test


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: object) -> Iterator[None]:
    """After a transactional test all rows go at once. Django's own flush takes a second for that, and append-only
    tables refuse it. On SQLite the file as it was made is copied over it; on PostgreSQL the rows are deleted in one
    short transaction, whose triggers are silent where a superuser says so."""
    from django.core.management.commands import flush
    from django.db import connection

    with ExitStack() as stack:
        with django_db_blocker.unblock():
            empty = emptied_by_copy(stack) if connection.vendor == "sqlite" else emptied_by_deletes
        kept = flush.Command.handle
        flush.Command.handle = lambda command, **options: empty()
        yield
        flush.Command.handle = kept


def emptied_by_copy(stack: ExitStack) -> Callable[[], None]:
    import sqlite3

    from django.db import connection

    from durableweb.sqlite.base import take_turn

    connection.ensure_connection()
    as_made = stack.enter_context(closing(sqlite3.connect(":memory:", check_same_thread=False)))
    connection.connection.backup(as_made)

    def empty() -> None:
        connection.ensure_connection()
        take_turn(connection.write_lock)
        try:
            as_made.backup(connection.connection)
        finally:
            connection.write_lock.release()

    return empty


def emptied_by_deletes() -> None:
    from django.db import connection, transaction

    from runs.engine import triggers

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(look_for_rows())
        filled = [table for (table,) in cursor.fetchall()]
        may_say_so = is_superuser(cursor)
        if may_say_so:
            cursor.execute("SET LOCAL session_replication_role = replica")
        elif filled:
            triggers.remove()
        for table in filled:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
        if filled and not may_say_so:
            triggers.install()


@cache
def look_for_rows() -> str:
    from django.db import connection

    tables = set(connection.introspection.django_table_names(only_existing=True)) - KEPT
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {connection.ops.quote_name(table)})"
        for table in sorted(tables)
    )


def is_superuser(cursor: object) -> bool:
    cursor.execute("SHOW is_superuser")
    return cursor.fetchone() == ("on",)


@pytest.fixture
def process_environment(db: None) -> dict[str, str]:
    """For child processes (manage.py, uvicorn) that work on the rows of this test; it must be transactional."""
    from urllib.parse import urlsplit

    from django.db import connection

    if not ON_POSTGRES:
        home = Path(connection.settings_dict["NAME"]).parent
        return {**os.environ, "DURABLEWEB_HOME": str(home)}
    url = urlsplit(os.environ["DATABASE_URL"])
    return {**os.environ, "DATABASE_URL": url._replace(path=f"/{connection.settings_dict['NAME']}").geturl()}


# -- people -------------------------------------------------------------------------------------------------
# ada and bob review, eve may see nothing, olga operates, iris audits.


@pytest.fixture
def person(db: None) -> Callable[..., object]:
    """person("ada", "pm") makes a user in the named groups, whose password is the name."""
    from django.contrib.auth.models import Group, User

    def make(name: str, *groups: str, staff: bool = False) -> User:
        user = User.objects.create_user(name, f"{name}@example.com", name, is_staff=staff)
        user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
        return user

    return make


@pytest.fixture
def pm_group(db: None):
    from django.contrib.auth.models import Group

    return Group.objects.get_or_create(name="pm")[0]


@pytest.fixture
def ada(person):
    return person("ada", "pm")


@pytest.fixture
def bob(person):
    return person("bob", "pm")


@pytest.fixture
def eve(person):
    return person("eve")


@pytest.fixture
def olga(person):
    return person("olga", "ops", staff=True)


@pytest.fixture
def iris(person):
    return person("iris", "auditors")
