"""The verbs of parents and children, each with the rows it needs; beside those of faulty_verbs.py."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from runs import Graph, start
from runs.core import codec
from runs.core.child import Child
from runs.core.graph import END
from runs.core.ledger import CHILD, Entry
from runs.engine.claim import MOST_DEATHS
from runs.engine.drive import Drive
from runs.engine.family import cancel_children
from runs.engine.ledger import RowLedger
from runs.engine.telling import tell
from runs.models import Run
from tests.runs.faulty_rows import Log, claim, claimed, few, lone, many, pass_lease
from tests.runs.faulty_verbs import Made, of


def rows_of(graph: Graph) -> tuple[Drive, RowLedger]:
    drive = claimed(graph)
    return drive, RowLedger(drive.lease, drive.rows)


def asked(key: str, **about: Any) -> Entry:
    request = codec.dumps({"graph": few.name, "on_parent_end": "cancel", **about})
    return Entry(key, CHILD, few.name, request, codec.digest(request))


def waiting(graph: Graph) -> Run:
    """Its children have not begun."""
    run = start(graph, {})
    claim(run).run()
    return run


def woken(run: Run) -> Drive:
    """Its worker goes on, though its children have not ended."""
    Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
    run.entries.update(awaited=False)
    return claim(run)


def first_of(run: Run) -> Run:
    return run.children.order_by("created_at", "item").first()


@of("families")
def start_a_child() -> Made:
    drive, rows = rows_of(lone)
    entry = asked("fault-few:" + codec.digest(codec.dumps({}))[:8] + "#1", input={})
    return str(drive.lease.run_id), lambda: rows.start(entry, few, {"log": []})


@of("families")
def begin_a_fan_out_and_its_children() -> Made:
    drive, rows = rows_of(lone)

    def begin() -> None:
        entry = rows.fan_out(asked("apart", items=2, digest="", at_once=1), 2, 1)
        rows.spread(entry, few, [{"log": []}, {"log": ["second"]}])

    return str(drive.lease.run_id), begin


@of("families")
def wait_for_a_child_of_an_earlier_step() -> Made:
    drive, rows = rows_of(lone)
    entry = rows.start(asked("few:apart#1", input={}), few, Log().model_dump())
    drive.lease.commit_step("go", {"log": []})
    claim(first_of(Run.objects.get(pk=drive.lease.run_id))).run()
    later = RowLedger(drive.lease, [])
    child = Child(entry.child, few.name)
    waits = Entry("end", CHILD, few.name, "{}", codec.digest("{}"), child=child.id)
    return str(drive.lease.run_id), lambda: later.rejoin(waits)


@of("families")
def look_for_the_end_of_a_child() -> Made:
    drive, rows = rows_of(lone)
    entry = rows.start(asked("few:looked#1", input={}), few, Log().model_dump())
    claim(first_of(Run.objects.get(pk=drive.lease.run_id))).run()
    return str(drive.lease.run_id), lambda: rows.look([entry.key])


@of("families")
def end_a_child_whose_parent_waits() -> Made:
    run = waiting(lone)
    drive = claim(first_of(run))
    return str(run.pk), lambda: drive.lease.commit_step(END, {"log": ["done"]})


@of("families")
def fail_one_of_many_and_release_the_next() -> Made:
    run = waiting(many)
    drive = claim(first_of(run))
    return str(run.pk), lambda: drive.lease.fail("permanent", "no")


@of("families")
def tell_what_ends_a_killed_process_has_left_untold() -> Made:
    run = waiting(many)
    with patch("runs.engine.telling.tell"):  # killed right after the commit of the end
        claim(first_of(run)).lease.fail("permanent", "no")
    return str(run.pk), lambda: tell(run.pk)


@of("families")
def find_that_a_child_is_poison() -> Made:
    run = waiting(lone)
    child = first_of(run)
    claim(child)
    Run.objects.filter(pk=child.pk).update(deaths=MOST_DEATHS, silent=MOST_DEATHS, alone=True)
    pass_lease()
    return str(run.pk), lambda: claim(child, "w2")


@of("families")
def cancel_a_parent() -> Made:
    run = waiting(lone)
    return str(run.pk), lambda: run.cancel("ada", "not needed")


@of("families")
def cancel_what_a_parent_left_behind() -> Made:
    run = waiting(lone)
    woken(run).lease.fail("permanent", "no")
    return str(run.pk), lambda: cancel_children(run.pk)


def cancelled_with_children(graph: Graph) -> tuple[RowLedger, Entry]:
    """Its children were cancelled with it; it has been repaired, and is about to ask for them."""
    run = waiting(graph)
    run.cancel("ada", "too early")
    cancel_children(run.pk)
    Run.objects.get(pk=run.pk).retry("olga", "it is time")
    drive = claim(run)
    rows = RowLedger(drive.lease, drive.rows)
    [entry] = (entry for entry in rows.entries.values() if entry.kind == CHILD)
    return rows, entry


@of("families")
def take_up_a_child() -> Made:
    rows, entry = cancelled_with_children(lone)
    return rows.run_id, lambda: rows.take_up(entry)


@of("families")
def take_up_many_children() -> Made:
    rows, entry = cancelled_with_children(many)
    return rows.run_id, lambda: rows.take_up(entry)
