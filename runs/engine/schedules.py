"""Schedules that authors declare, as rows; and the chore that starts what their slots owe."""

from __future__ import annotations

import logging

from django.db import transaction

from runs import chores, registry
from runs.core.graph import Graph
from runs.core.recurring import Every
from runs.engine import clock
from runs.engine.durably import durably
from runs.models.schedule import Schedule

log = logging.getLogger(__name__)


def newest() -> dict[str, Graph]:
    """The newest version of each graph that this process serves: what it declares counts."""
    return {graph.name: graph for graph in sorted(registry.served(), key=lambda graph: graph.version)}


def graph_named(name: str) -> Graph:
    return registry.get(name)


def sync() -> None:
    """Make the rows say what this code declares. Done by several at once, it is done once.

    A row keeps what people did (a pause), and what an older process declares of it changes nothing. One that the code
    declares no more is withdrawn: it starts nothing, and is shown as such.
    """
    graphs = newest()
    rows = {(row.graph, row.name): row for row in Schedule.objects.filter(graph__in=graphs)}
    for graph in graphs.values():
        for every in graph.schedules.values():
            row = rows.pop((graph.name, every.name), None)
            durably(lambda graph=graph, every=every, row=row: _put(graph, every, row))
    for (name, _), row in rows.items():
        if row.declared and row.withdrawn_at is None and row.version <= graphs[name].version:
            gone = Schedule.objects.filter(pk=row.pk, withdrawn_at=None, version=row.version)
            gone.update(withdrawn_at=clock.now(), due_at=None, version=graphs[name].version)


def _put(graph: Graph, every: Every, row: Schedule | None) -> None:
    asked = {
        "cron": every.recurrence.cron,
        "zone": every.recurrence.zone,
        "catch_up": every.catch_up,
        "most": every.most,
    }
    now = clock.now()
    begins = {"done_until": now, "due_at": every.recurrence.after(now)}
    if row is None:
        whole = {**asked, **begins, "declared": True, "version": graph.version}
        with transaction.atomic():
            Schedule.objects.get_or_create(graph=graph.name, name=every.name, defaults=whole)
        return
    if not row.declared:
        log.warning("Schedule %s was made by hand; the one of that name in the code starts nothing", row)
        return
    if row.version > graph.version:
        return
    known = {name: getattr(row, name) for name in (*asked, "version", "withdrawn_at", "paused_at")}
    if known == known | asked | {"version": graph.version, "withdrawn_at": None}:
        return
    changes = {**asked, "version": graph.version, "withdrawn_at": None}
    if known != known | {"cron": asked["cron"], "zone": asked["zone"], "withdrawn_at": None}:
        changes |= begins | {"fault": ""}  # its slots are others now
        if row.paused_at is not None:
            changes["due_at"] = None
    Schedule.objects.filter(pk=row.pk, declared=True, **known).update(**changes)


def fire(pk: int) -> None:
    Schedule.objects.select_related("created_by").get(pk=pk).fire()


def register() -> None:
    chores.also(chores.Chore("schedules", Schedule.objects.served, "due_at", fire))
