"""The web process borrows its connections to PostgreSQL from a few that stay open."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.utils import ConnectionHandler

from durableweb import web_connections

pytestmark = pytest.mark.django_db


@pytest.fixture
def handler():
    """Of this process's database, with settings of its own."""
    fresh = ConnectionHandler({"default": copy.deepcopy(connection.settings_dict)})
    yield fresh
    if fresh["default"].vendor == "postgresql":
        fresh["default"].close_pool()


def backend(handler: ConnectionHandler) -> int:
    """The server's process behind this thread's connection, which is then given back."""
    with handler["default"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        found = cursor.fetchone()[0]
    handler["default"].close()
    return found


@pytest.mark.postgres_only
def test_requests_find_a_connection_open(handler):
    web_connections.share(handler)
    seen = set()
    for _ in range(10):
        with ThreadPoolExecutor(1) as thread:  # each request has a thread of its own
            seen.add(thread.submit(backend, handler).result())
    assert len(seen) <= 2, "the pool begins with one, and may think that one more is needed"


@pytest.mark.postgres_only
def test_a_connection_that_the_server_has_ended_is_replaced(handler):
    web_connections.share(handler)
    first = backend(handler)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [first])
    assert backend(handler) != first


@pytest.mark.postgres_only
def test_zero_is_a_connection_for_each_request(handler, monkeypatch):
    monkeypatch.setenv("DURABLEWEB_WEB_CONNECTIONS", "0")
    web_connections.share(handler)
    assert "pool" not in handler.settings["default"]["OPTIONS"]


@pytest.mark.sqlite_only
def test_on_sqlite_nothing_is_shared(handler):
    before = copy.deepcopy(handler.settings["default"])
    web_connections.share(handler)
    assert handler.settings["default"] == before
