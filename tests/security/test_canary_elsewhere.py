"""O4, MISSION A15, on later paths: waits, children, compensations, migrations, schedules, filters, parts.

As in test_canary.py everything that could have been kept is searched after each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import models
from django.test import Client
from django.urls import reverse

from approvals.models import Approval, SavedFilter
from runs import Graph, Permanent, chores, start, tool
from runs.engine import clock, schedules
from runs.errors import Conflict, Invalid
from runs.models import Archival, GraphStop, QueueLimit, Run, Schedule, Signal, Tombstone
from runs.models import __all__ as rows
from tests.runs.driving import drive, pass_time, registered
from tests.security import leaking
from tests.security.canary import CANARY, found_in
from tests.security.test_canary import REDACTED, driven
from tests.security.test_canary import nothing_is_left as _  # noqa: F401 - it watches here too
from tests.security.test_canary import signed_in as signed_in

pytestmark = pytest.mark.django_db(transaction=True)


def undo(result: str) -> str:
    return f"undone: {CANARY}"


@tool(kind="write", limit=timedelta(seconds=5), compensate=undo)
def book(text: str) -> str:
    return f"booked {text}"


below = Graph("leaking-below")


@below.node
def rest(run: Any, state: dict[str, Any]) -> None: ...


family = Graph("leaking-family", viewers="pm", operators="ops", on_failure="compensate")


@family.node
def leak(run: Any, state: dict[str, Any]) -> None:
    PLACES[state["where"]](run)


def _fail_after_booking(run: Any) -> None:
    run.call(book, text="a")
    raise Permanent("no")


PLACES = {
    "wait name": lambda run: run.wait_for(CANARY),
    "child input": lambda run: run.start(below, {"deep": [f"key {CANARY}"]}),
    "child key": lambda run: run.start(below, {}, key=f"child:{CANARY}"),
    "map input": lambda run: run.map(below, [{}, {"key": CANARY}]),
    "undone": _fail_after_booking,
}


@pytest.fixture(autouse=True)
def families_are_known() -> Iterator[None]:
    with registered(below, family):
        yield
    clock.AHEAD = timedelta()


def test_what_a_run_asks_of_others_must_not_hold_it() -> None:
    """The names of waits; the input and key of children, and of each of many."""
    for where in ("wait name", "child input", "child key", "map input"):
        run = start(family, {"where": where})
        drive(run)
        assert (run.status, run.error_kind) == ("failed", "permanent"), (where, run.error)
        assert "holds the value of the secret CANARY" in run.error, where
    assert not Run.objects.filter(graph=below.name).exclude(status="cancelled").exists()


def test_what_a_compensation_returns_is_redacted() -> None:
    run = start(family, {"where": "undone"})
    for _time in range(3):
        drive(run)
    assert run.status == "failed", run.error
    assert REDACTED in run.entries.get(compensates__isnull=False).result


def test_a_repair_that_holds_it_is_refused() -> None:
    """In its reason, its actor, and in what it gives; of a fork, a closing, a cancel and a settlement too."""
    run = start(family, {"where": "wait name"})
    drive(run)
    assert run.status == "failed"
    because = f"because of {CANARY}"
    for verb in (
        lambda: run.retry("ops", because),
        lambda: run.move("ops", because, to="leak"),
        lambda: run.retry("ops", "soon", state={"where": {"deep": [because]}}),
        lambda: run.fork("ops", because),
        lambda: run.close("ops", because),
        lambda: run.retry(because, "soon"),
        lambda: run.fork(because, "soon"),
        lambda: run.cancel(because, "soon"),
        lambda: run.settle("ops", "no matter", "happened", "soon", result=because),
    ):
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            verb()
    with pytest.raises(Invalid, match="choose one of leak") as refused:
        run.move("ops", "soon", to="attic")
    assert found_in(str(refused.value)) == []


def test_a_signal_that_holds_it_is_refused_at_its_field() -> None:
    run = driven("people")
    for given, path in (
        ({"name": CANARY}, "name"),
        ({"name": "paid", "payload": {"a": [CANARY]}}, "$.a[0]"),
        ({"name": "paid", "key": CANARY}, "key"),
        ({"name": "paid", "by": f"the bank, with {CANARY}"}, "by"),
    ):
        with pytest.raises(Invalid) as refused:
            run.signal(**given)
        assert list(refused.value.fields) == [path]
    assert not Signal.objects.exists()


# -- schedules ----------------------------------------------------------------------------------------------


def test_a_schedule_that_holds_it_is_refused_at_its_field() -> None:
    for given, path in (
        ({"name": f"with {CANARY}"}, "name"),
        ({"cron": CANARY}, "cron"),
        ({"input": {"key": CANARY}}, "input"),
        ({"slot_field": CANARY}, "slot_field"),
    ):
        asked = {"name": "nightly", "cron": "30 2 * * *", **given}
        with pytest.raises(Invalid) as refused:
            Schedule.objects.make(below.name, asked.pop("name"), asked.pop("cron"), **asked)
        assert path in refused.value.fields
        assert "holds the value of the secret CANARY" in " ".join(refused.value.fields[path])
    assert not Schedule.objects.exists()


def test_a_declared_input_that_holds_it_starts_nothing_and_a_fault_is_told_without_it() -> None:
    def name_it(slot: Any) -> Any:
        return {"key": CANARY}

    def give_it_away(slot: Any) -> Any:
        raise LookupError(f"no answer for {CANARY}")

    declaring = Graph("leaking-schedules")
    declaring.node(rest)
    declaring.every("* * * * *")(name_it)
    declaring.every("* * * * *")(give_it_away)
    with registered(declaring):
        schedules.sync()
        pass_time(120)
        chores.do_due()
    faults = dict(Schedule.objects.values_list("name", "fault"))
    assert "holds the value of the secret CANARY" in faults["name_it"]
    assert REDACTED in faults["give_it_away"]
    assert not Run.objects.exists()


def test_a_stop_a_limit_and_a_lane_that_hold_it_are_refused() -> None:
    for graph, reason in ((CANARY, "down"), (below.name, f"down, with {CANARY}")):
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            GraphStop.objects.stop(graph, "olga", reason)
    with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
        QueueLimit.objects.put(CANARY, at_once=1)
    with pytest.raises(Invalid, match="lane: This holds the value of the secret CANARY"):
        start(below, {}, lane=CANARY)
    assert not Run.objects.exists()


# -- versions -----------------------------------------------------------------------------------------------


@contextmanager
def a_migration_that_gives_it_away() -> Iterator[Run]:
    old, new = Graph("leaking-versions", 1), Graph("leaking-versions", 2)
    old.node(rest)
    new.node(rest)

    @new.migrate(1)
    def from_old(state: Any, node: str) -> Any:
        raise ValueError(f"cannot sign in with {CANARY}")

    with registered(old):
        run = start(old, {})
    with registered(new):
        yield run


def test_a_migration_that_fails_with_it_is_told_without_it() -> None:
    """By the worker that tries, by `checkgraphs`, and to the operator who asks."""
    with a_migration_that_gives_it_away() as run:
        told = StringIO()
        with pytest.raises(CommandError):
            call_command("checkgraphs", stdout=told)
        assert REDACTED in told.getvalue() and found_in(told.getvalue()) == []
        with pytest.raises(Conflict) as refused:
            run.migrate("ops", "soon")
        assert REDACTED in str(refused.value) and found_in(str(refused.value)) == []
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            run.migrate("ops", f"because of {CANARY}")
        pass_time(10)
        drive(run)
        assert run.status == "retrying"
        assert REDACTED in run.checkpoints.get(kind="retry").reason


def test_a_run_is_not_kept_or_erased_with_it() -> None:
    run = driven("people")
    for verb in (run.keep, run.release_keep, run.archive, run.erase):
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            verb(f"because of {CANARY}", by="ops")
    assert not Tombstone.objects.exists() and not Archival.objects.exists()


# -- people -------------------------------------------------------------------------------------------------


def test_a_filter_is_not_kept_with_it(signed_in: Client) -> None:
    for name, query in ((CANARY, "?q=a"), ("mine", f"?q={CANARY}")):
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            SavedFilter.keep(signed_in.get("/").wsgi_request.user, name, query)
    address = reverse("approvals:filters")
    said = signed_in.post(address, {"name": f"with {CANARY}", "query": "q=a"}, follow=True)
    assert said.status_code in (200, 422)
    assert not SavedFilter.objects.exists()


def test_a_part_is_not_given_away_with_it(ada: Any, eve: Any) -> None:
    run = driven("people")
    with pytest.raises(Invalid, match="note: This holds the value of the secret CANARY"):
        Approval.objects.get(run=run).delegate(ada, eve, note=f"use {CANARY}")
    assert leaking.called == []


# -- the columns --------------------------------------------------------------------------------------------

# Texts that come from outside; the tests of this file and of test_canary.py put the secret into each of them.
OPEN = {
    "Blob": {"media_type"},
    "Checkpoint": {"body", "reason"},
    "Run": {"key", "labels", "lane", "error"},
    "Signal": {"name", "payload", "key", "by"},
    "LedgerEntry": {"key", "name", "request", "idempotency_key", "result", "error"},
    "Remark": {"body"},
    "Schedule": {"name", "cron", "input", "slot_field", "fault"},
    "GraphStop": {"graph", "reason"},
    "QueueLimit": {"queue"},
    "LaneUse": {"lane"},  # a run's
    "LiveText": {"text"},  # tests/runs/test_live_texts.py
    "Tombstone": {"reason"},
    "Archival": {"reason"},
}
# Words, names and digests of ours, of the code and of people's accounts: nobody writes a text there.
OURS = {
    "Blob": {"sha256", "storage_name"},
    "Checkpoint": {"kind", "node", "status", "actor", "entries", "body_digest", "digest"},
    "Run": {
        "graph",
        "status",
        "ending",
        "node",
        "queue",
        "leased_by",
        "told",
        "told_kind",
        "error_kind",
        "head",
    },
    "LedgerEntry": {
        *("kind", "request_digest", "status", "error_kind", "answered_by", "approved_digest"),
        *("approval_head", "compensation"),
    },
    "LaneUse": {"window"},
    "LiveText": {"key", "name"},  # an entry's
    "QueueLimit": {"window"},
    "Remark": {"kind", "worker"},
    "Tombstone": {"by", "head", "rest"},
    "Archival": {"by", "head"},
    "ToolRate": {"name", "per_key", "window"},
    "UntoldEnd": {"status"},
    "GraphStop": {"by"},
    "Schedule": {"graph", "zone", "catch_up", "paused_by"},
    "Worker": {"name", "host", "boot_id", "serves", "refuses", "holds", "bell"},
    "GraphVersion": {"graph", "fingerprint", "shape", "viewers", "operators"},
}


# What stands in them came from the hot ones, and from nowhere else: triggers see to that.
COLD = {
    "ArchivedCheckpoint": "Checkpoint",
    "ArchivedEntry": "LedgerEntry",
    "ArchivedRemark": "Remark",
    "ArchivedSignal": "Signal",
}


def test_each_column_of_text_is_known_here() -> None:
    """A new one is put into one of these tables, and if it comes from outside, into a test."""
    import runs.models

    for name in rows:
        fields = getattr(runs.models, name)._meta.fields
        texts = {field.name for field in fields if isinstance(field, models.CharField | models.TextField)}
        hot = COLD.get(name, name)
        assert texts == OPEN.get(hot, set()) | OURS.get(hot, set()), name
