"""What nobody looks after: shown on the pages, told before a deploy, and migrated from the shell."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from runs import Graph, registry, start
from runs.engine import clock
from runs.engine.holding import NEEDS_DEPLOY, NEEDS_MIGRATION, held
from runs.models import Run
from runs.pages.contents import RunPage
from runs.pages.rows import rows
from tests.runs import versioned
from tests.runs.driving import claim, registered
from tests.runs.test_versions import a_worker_that_serves, drive, parked
from tests.runs.versioned import first, second, third, unserved

pytestmark = pytest.mark.django_db(transaction=True)

OLD = ("versioned", 1)


def asked(*graphs: Graph) -> dict:
    with registered(*graphs):
        return {pair: one.needs for pair, one in held([OLD], clock.now()).items()}


def told(*graphs: Graph) -> tuple[bool, dict]:
    """What `checkgraphs --json` says of this code, and whether it ended well."""
    out = StringIO()
    with registered(*graphs):
        try:
            call_command("checkgraphs", json=True, stdout=out)
        except CommandError:
            return False, json.loads(out.getvalue())
    return True, json.loads(out.getvalue())


def test_what_is_missing_is_named(monkeypatch):
    """R5, R7."""
    start(first, {})
    assert asked(first) == asked(second) == asked(first, unserved) == {}
    assert asked(unserved) == {OLD: NEEDS_MIGRATION}
    assert asked() == {OLD: NEEDS_DEPLOY}
    monkeypatch.setitem(registry.broken, "shop.graphs", "ImportError: no module named tax")
    why = held([OLD], clock.now())[OLD].why
    assert why == "shop.graphs cannot be imported (ImportError: no module named tax)"
    with a_worker_that_serves(OLD):
        assert asked() == {}, "another machine has the code"


def test_another_shape_under_the_same_version_is_not_served():
    start(first, {})
    other = Graph("versioned", version=1, state=versioned.First)
    other.node(versioned.pack)
    assert asked(other) == {OLD: NEEDS_DEPLOY}
    with registered(other):
        assert "bump the version" in held([OLD], clock.now())[OLD].why


def test_a_held_run_keeps_its_status_and_its_page_says_what_it_needs(client, person):
    """R7; and people can still answer what it waits for."""
    client.force_login(person("olga", "ops"))
    created, waiting = start(first, {}), parked()
    with registered(unserved):
        now = clock.now()
        page = client.get(reverse("runs:run", args=[created.pk])).content.decode()
        assert "Held: needs migration" in page and "no migration from 1" in page
        assert [RunPage(run, now).sentence.status for run in (created, waiting)] == ["held", "waiting"]
        page = client.get(reverse("runs:run", args=[waiting.pk])).content.decode()
        assert "No worker serves version 1" in page and "Held:" not in page
        told = {row.run.pk: (row.shown, row.sentence.text) for row in rows([created, waiting], now)}
    assert told[created.pk] == ("created", "Held, needs migration: no worker serves version 1")
    assert told[waiting.pk][0] == "waiting" and told[waiting.pk][1].startswith("Waiting for 2")


def test_a_run_that_somebody_serves_or_drives_is_not_shown_as_held():
    run = start(first, {})
    with registered(first):
        claim(run)
    run.refresh_from_db()
    with registered(unserved):
        assert RunPage(run, clock.now()).unserved is None
    other = start(first, {})
    with registered(first):
        assert RunPage(other, clock.now()).unserved is None


def test_the_page_of_a_migrated_run_tells_and_draws_it():
    run = start(first, {"to": "box"})
    drive(run, second)
    page = RunPage(run, clock.now())
    assert page.picture is not None
    assert [(step.number, step.node, step.status) for step in page.story.steps] == [
        (1, "ask", "superseded"),
        (2, "box", "completed"),
    ]
    assert [node.box.name for node in page.picture.tall.nodes] == ["ask", "box"]
    assert "Migrated by w1: version 1 -> 2" in [row.name for row in page.timeline.rows]


def test_within_its_node_a_migration_is_no_step_of_its_own():
    run = start(first, {})
    drive(run, second)
    assert [(step.number, step.node) for step in RunPage(run, clock.now()).story.steps] == [(1, "ask")]


# -- before a deploy ------------------------------------------------------------------------------------------


def test_a_deploy_that_strands_nobody_is_let_pass():
    start(first, {})
    start(second, {"parcels": 0})
    ok, report = told(first, second)
    assert ok and report == {"ok": True, "stranded": [], "migratable": [], "changed": [], "broken": {}}


def test_runs_that_would_be_stranded_are_listed():
    """R7: it had said so before."""
    run, done = start(first, {}), start(first, {})
    done.cancel("ada", "not needed")
    ok, report = told(unserved)
    (version,) = report["stranded"]
    assert not ok and (version["runs"], version["ids"]) == (1, [str(run.pk)])
    assert (version["graph"], version["version"], version["needs"]) == ("versioned", 1, NEEDS_MIGRATION)
    assert told()[1]["stranded"][0]["needs"] == NEEDS_DEPLOY


def test_migrations_are_tried_on_the_runs_that_they_are_for():
    good, bad = start(first, {}), start(first, {"to": "nowhere"})
    before = list(Run.objects.order_by("pk").values())
    ok, report = told(third)
    (version,) = report["migratable"]
    assert not ok and (version["to"], version["runs"]) == (3, 2)
    assert list(version["failing"]) == [str(bad.pk)] and "'nowhere'" in version["failing"][str(bad.pk)]
    assert list(Run.objects.order_by("pk").values()) == before, "nothing is written"
    bad.cancel("ada", "not needed")
    assert told(third)[0] is True
    assert good.version == 1


def test_a_shape_that_has_changed_under_its_version_stops_a_deploy_though_no_run_is_on_it():
    start(first, {}).cancel("ada", "not needed")
    other = Graph("versioned", version=1, state=versioned.First)
    other.node(versioned.pack)
    ok, report = told(other)
    assert not ok and report["changed"] == [{"graph": "versioned", "version": 1}]
    assert report["stranded"] == []


def test_a_module_that_cannot_be_imported_stops_a_deploy(monkeypatch):
    """R5."""
    monkeypatch.setitem(registry.broken, "shop.graphs", "ImportError: no module named tax")
    ok, report = told()
    assert not ok and report["broken"] == {"shop.graphs": "ImportError: no module named tax"}


def test_the_check_can_be_read_by_people():
    runs = [start(first, {}) for _ in range(22)]
    out = StringIO()
    with registered(unserved), pytest.raises(CommandError, match="Do not deploy this code"):
        call_command("checkgraphs", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("versioned version 1: 22 live runs would be held (needs migration): ")
    assert lines[1] == f"  {runs[0].pk}" and lines[-1] == "  and 2 more"
    with registered(second):
        out = StringIO()
        call_command("checkgraphs", stdout=out)
    assert out.getvalue() == "versioned version 1: 22 live runs would be migrated to version 2\n"
    with registered(first):
        out = StringIO()
        call_command("checkgraphs", stdout=out)
    assert out.getvalue() == "Every live run goes on with this code.\n"


# -- from the shell -------------------------------------------------------------------------------------------


def test_a_run_is_migrated_from_the_shell():
    run, out = start(first, {}), StringIO()
    with registered(first, second):
        call_command("migrate_run", run.short_id, reason="the old code goes", json=True, stdout=out)
        with pytest.raises(CommandError, match="Nothing here migrates 'versioned' from version 2"):
            call_command("migrate_run", run.short_id, reason="again")
    said = json.loads(out.getvalue())
    assert said == {
        "id": str(run.pk),
        "status": "running",
        "from": 1,
        "version": 2,
        "node": "ask",
        "reason": "the old code goes",
    }
    checkpoint = run.checkpoints.get(kind="migrate")
    assert checkpoint.actor.startswith("shell of ") and checkpoint.reason.endswith("(version 1 -> 2)")
