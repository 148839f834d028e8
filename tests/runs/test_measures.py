"""What an installation is watched by: numbers of runs, each by a bounded look."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from runs import Graph, start
from runs.engine import clock
from runs.measures import MEANINGS, measures
from runs.models import GraphVersion, Run
from tests.runs.driving import drive, registered
from tests.runs.workshop import asking, broken, done, faults, workshop

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_operator_is_told_what_waits_for_workers_and_what_for_them(client, settings):
    """C5, O1: by what they would be woken for."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "metrics_token": "watch"}
    done.clear()
    faults.clear()
    away = Graph("away")

    @away.node
    def only(run, state): ...

    with registered(workshop, asking, away):
        now = clock.now()
        for queue, priority, minutes in (("b", 3, 7), ("b", 0, 2), ("a", 2, 1), ("c", 2, -9)):
            run = start(workshop, {})
            wake_at = now - timedelta(minutes=minutes)
            Run.objects.filter(pk=run.pk).update(queue=queue, priority=priority, wake_at=wake_at)
        drive(start(asking, {}))
        faults["wood"] = [broken, broken, broken]
        failed = [start(workshop, {}) for _ in range(3)]
        for run in failed:
            drive(run)
        Run.objects.filter(pk=failed[0].pk).update(error_kind="poison")
        failed[1].close("olga", "nobody wants it")
        Run.objects.filter(pk=failed[2].pk).update(error_kind="rejected")
        drive(start(workshop, {}))
        doubted = asking_in_doubt()
        start(away, {})
    told = client.get("/metrics/", headers={"Authorization": "Bearer watch"}).content.decode()
    found = {one.name: one.samples[0].value for one in text_string_to_metric_families(told)}
    age = found.pop("durableweb_runs_oldest_due_seconds")
    assert 7 * 60 <= age < 60 * 60
    expected = {
        "created": 5,
        "running": 0,
        "waiting": 2,
        "retrying": 0,
        "due": 4,
        "to_repair": 1,
        "poison": 1,
    }
    assert {name: found[f"durableweb_runs_{name}"] for name in expected} == expected
    assert found["durableweb_effects_in_doubt"] == 1 and doubted.status == "waiting"
    assert found["durableweb_runs_held"] == 5, "none of these graphs is in this code any more"
    assert MEANINGS.keys() == measures(clock.now()).keys()


def asking_in_doubt() -> Run:
    """A run that waits, with a call of which nobody knows."""
    run = start(asking, {})
    drive(run)
    run.entries.filter(kind="effect")
    from runs.models import LedgerEntry

    LedgerEntry.objects.filter(run=run, kind="effect").update(status="in_doubt")
    return run


def test_the_look_does_not_grow_with_the_runs():
    with registered(workshop):
        for queue in ("a", "b"):
            Run.objects.filter(pk=start(workshop, {}).pk).update(queue=queue)
        with CaptureQueriesContext(
            connection,
        ) as few:
            before = measures(clock.now())
        for _ in range(20):
            start(workshop, {})
        Run.objects.filter(queue="default").update(queue="b")
        with CaptureQueriesContext(connection) as many:
            after = measures(clock.now())
    assert (before["runs_due"], after["runs_due"]) == (2, 22)
    assert len(few) == len(many) < 25
    assert all("LIMIT" in one["sql"] for one in many if "COUNT" in one["sql"])
    assert GraphVersion.objects.count() >= 1
