"""Migrations among the verbs of faulty_verbs.py; each begins with a run of the first version."""

from __future__ import annotations

from datetime import timedelta

from runs import Graph, start
from runs.core import ledger
from runs.core.ledger import Entry
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.lease import Lease
from runs.engine.ledger import RowLedger
from runs.engine.migrating import bring_over
from runs.models import Run
from tests.runs.faulty_rows import pass_lease, reply
from tests.runs.faulty_verbs import Made, of
from tests.runs.versioned import first, second, ship


def shipping(lease: Lease) -> Entry:
    """The write that the first version's node `pack` asks for."""
    call = ship.bind(parcel="A")
    key = f"ship:{call.digest[:8]}#1"
    return ledger.effect(call, key, f"{lease.run_id}:{lease.step + 1}:{key}")


def claimed(run: Run, graph: Graph) -> Drive:
    return Drive(*Claimer("w1", [graph], timedelta()).claim(alone=True, only=run.pk))


def waiting(to: str) -> Run:
    """It has asked two questions."""
    run = start(first, {"to": to})
    claimed(run, first).run()
    return run


def bringing(to: str) -> Made:
    """The worker of the second version holds it, and both answers."""
    run = waiting(to)
    for key in ("ok", "wrap"):
        reply(run, key)
    drive = claimed(run, second)
    return str(run.pk), lambda: bring_over(drive.lease, drive.rows)


@of("versions")
def bring_over_within_the_node() -> Made:
    return bringing("")


@of("versions")
def bring_over_to_another_node() -> Made:
    return bringing("box")


@of("versions")
def bring_over_a_run_whose_write_may_have_been_sent() -> Made:
    run = start(first, {})
    Run.objects.filter(pk=run.pk).update(node="pack")
    sending = claimed(run, first)
    RowLedger(sending.lease, sending.rows).open(shipping(sending.lease), tried=ship.limit)
    pass_lease()
    clock.AHEAD += ship.limit
    drive = claimed(run, second)
    return str(run.pk), lambda: drive.run()


@of("versions")
def migrate_a_waiting_run_to_another_node() -> Made:
    run = waiting("box")
    return str(run.pk), lambda: Run.objects.get(pk=run.pk).migrate("olga", "now")


@of("versions")
def migrate_a_run_that_a_worker_drives() -> Made:
    run = start(first, {})
    claimed(run, first)
    return str(run.pk), lambda: Run.objects.get(pk=run.pk).migrate("olga", "now")
