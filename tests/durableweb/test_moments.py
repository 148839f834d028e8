"""Moments from PostgreSQL are what Django's own reader makes of them."""

from __future__ import annotations

import copy
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import register_tzloader
from django.db.utils import ConnectionHandler

from durableweb import moments

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]

TEXTS = [
    "2026-11-30 16:07:25.046335+00",
    "2026-11-30 16:07:25.5+00",
    "2026-11-30 16:07:25+00",
    "2026-11-30 23:59:59.999999-11:30",
    "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00",
]


def read(text: str) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        return cursor.fetchone()[0]


def test_a_moment_is_the_same_as_read_by_django():
    connection.ensure_connection()
    ours = [read(text) for text in TEXTS]
    try:
        register_tzloader(UTC, connection.connection)
        assert ours == [read(text) for text in TEXTS]
    finally:
        moments.quicken(connection)
    assert ours[1] == datetime(2026, 11, 30, 16, 7, 25, 500_000, tzinfo=UTC)
    assert {each.tzinfo for each in ours} == {UTC}


def test_each_connection_has_the_quick_reader():
    own = ConnectionHandler({"default": copy.deepcopy(connection.settings_dict)})["default"]
    with own.cursor() as cursor:  # as Django gives it, who may put a reader of its own before ours
        assert cursor.cursor.adapters.get_loader(moments.KIND, moments.Format.TEXT) is moments.MomentReader
    own.close()


def test_what_the_standard_library_cannot_read_is_told_as_before():
    with pytest.raises(Exception, match="timestamp too large"):
        read("12026-11-30 16:07:25+00")


def test_another_zone_of_the_session_changes_no_moment():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'Asia/Kolkata'")
    assert read("2026-11-30 16:07:25+00") == datetime(2026, 11, 30, 16, 7, 25, tzinfo=UTC)
