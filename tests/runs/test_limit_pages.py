"""Limits and stops as operators set them: in the admin site and by commands."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from runs import Graph, start
from runs.models import GraphStop, QueueLimit
from tests.runs.driving import registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db

graph = Graph("stoppable", state=Log)


@graph.node
def work(run: Any, state: Log) -> None: ...


@pytest.fixture(autouse=True)
def known():
    with registered(graph):
        yield


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", "root@example.com", "root"))
    return client


def command(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_in_the_admin_site_a_graph_is_stopped_by_adding_and_goes_on_by_deleting(staff):
    address = "/admin/runs/graphstop/"
    assert staff.post(f"{address}add/", {"graph": "stoppable", "reason": ""}).status_code == 200
    assert not GraphStop.objects.exists()
    assert (
        staff.post(f"{address}add/", {"graph": "stoppable", "reason": "the provider is down"}).status_code
        == 302
    )
    stop = GraphStop.objects.get()
    assert (stop.by, stop.reason) == ("root", "the provider is down")
    assert "the provider is down" in staff.get(address).content.decode()
    assert staff.post(f"{address}{stop.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not GraphStop.objects.exists()


def test_in_the_admin_site_a_limit_is_set_and_changed_and_what_limits_nothing_is_refused(staff):
    address = "/admin/runs/queuelimit/"
    asked = {
        "queue": "mail",
        "at_once": "3",
        "at_once_a_lane": "",
        "starts": "",
        "starts_a_lane": "",
        "per_seconds": "60",
    }
    assert staff.post(f"{address}add/", asked).status_code == 302
    limit = QueueLimit.objects.get()
    assert (limit.queue, limit.at_once, limit.starts) == ("mail", 3, None)
    assert staff.post(f"{address}{limit.pk}/change/", asked | {"at_once": "5"}).status_code == 302
    for wrong in ({"at_once": "0"}, {"at_once": ""}, {"per_seconds": "0"}):
        assert staff.post(f"{address}{limit.pk}/change/", asked | wrong).status_code == 200
    limit.refresh_from_db()
    assert (limit.queue, limit.at_once) == ("mail", 5)


def test_by_command_a_graph_is_stopped_with_a_reason_and_goes_on():
    start(graph, {})
    told = json.loads(command("stop", "stoppable", "--reason", "the provider is down", "--json"))
    assert told == {"graph": "stoppable", "stopped": True, "live": 1}
    assert GraphStop.objects.get().by.startswith("shell of ")
    for words, said in (
        (["stoppable", "--reason", "again"], "was stopped by shell of"),
        (["stopable", "--reason", "x"], "There is no graph 'stopable'"),
        (["a\x00b", "--reason", "x"], "There is no graph"),
    ):
        with pytest.raises(CommandError, match=said):
            command("stop", *words)
    assert "goes on: 1 live run\n" in command("stop", "stoppable", "--lift")
    with pytest.raises(CommandError, match="is not stopped"):
        command("stop", "stoppable", "--lift")
    with pytest.raises(CommandError, match=r"^--reason: Say why, in at most \d+ characters\.$"):
        command("stop", "stoppable")


def test_by_command_limits_are_set_shown_and_lifted():
    assert command("limit") == "No limit.\n"
    assert command("limit", "mail", "--at-once", "3", "--starts-a-lane", "10") == (
        "mail: at once 3, starts a lane 10, per seconds 60\n"
    )
    (told,) = json.loads(command("limit", "--json"))["limits"]
    assert told == {
        "queue": "mail",
        "at_once": 3,
        "at_once_a_lane": None,
        "starts": None,
        "starts_a_lane": 10,
        "per_seconds": 60,
    }
    assert command("limit", "mail", "--lift") == "Queue mail has no limit.\n"
    for words, said in (
        (["mail", "--lift"], "has no limit"),
        (["--at-once", "1"], "Name the queue"),
        (["mail", "--at-once", "0"], r"^--at-once: Ensure this value is greater than or equal to 1\.$"),
        (["mail", "--per-seconds", "5"], r"^Give at least one number, or remove the limit\.$"),
        (["", "--at-once", "1"], "There is no queue ''"),
        (["mail", "--per-seconds", "5"], "at least one number"),
        (["x" * 51, "--at-once", "1"], "at most 50"),
        (["a\x00b", "--at-once", "1"], "There is no queue"),
    ):
        with pytest.raises(CommandError, match=said):
            command("limit", *words)
    assert not QueueLimit.objects.exists()
