"""Which versions nobody looks after, so that their due runs are held, and what would make them go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core.graph import Graph
from runs.engine.versions import Pair, migratable
from runs.errors import in_turn, told
from runs.models.run import Run
from runs.models.statuses import WAITING
from runs.models.worker import GraphVersion, Worker

NEEDS_DEPLOY, NEEDS_MIGRATION = "needs deploy", "needs migration"
MOVED_ON = timedelta(minutes=1)  # by a bell, each time such a run is due


@dataclass(frozen=True)
class Held:
    """`needs` is one of the two; `why` says what this process's code has instead, as a clause."""

    needs: str
    why: str | Promise


def held(pairs: Iterable[Pair], now: datetime) -> dict[Pair, Held]:
    """Those of these versions that neither a living worker serves nor code like this process's serves or migrates."""
    pairs = set(pairs)
    if not pairs:
        return {}
    changed = changed_shapes()
    if left := pairs - served_here(changed):
        left -= Worker.objects.seen_lately(now).serves()
    return {pair: reason(*pair, changed) for pair in left}


def wants_worker(run: Run, now: datetime) -> bool:
    """Whether a worker should take it. A waiting one needs none before it is due, or was and has been moved on."""
    if run.ended or run.leased_by is not None or run.wake_at is None:
        return False
    return run.status != WAITING or run.wake_at <= now + MOVED_ON


def served_here(changed: set[Pair]) -> set[Pair]:
    """What workers with this process's code serve or migrate."""
    graphs = [graph for graph in registry.served() if (graph.name, graph.version) not in changed]
    return {(graph.name, graph.version) for graph in graphs} | migratable(graphs).keys()


def changed_shapes() -> set[Pair]:
    """Versions whose nodes or edges are others in this code than those that runs were started on."""
    here: dict[Pair, Graph] = {(graph.name, graph.version): graph for graph in registry.served()}
    stored = GraphVersion.objects.filter(graph__in={name for name, _ in here})
    return {
        (row.graph, row.version)
        for row in stored.only("graph", "version", "fingerprint")
        if (row.graph, row.version) in here and here[row.graph, row.version].fingerprint != row.fingerprint
    }


def reason(name: str, version: int, changed: set[Pair]) -> Held:
    """What a version needs that is not looked after."""
    versions = sorted(graph.version for graph in registry.served() if graph.name == name)
    if (name, version) in changed:
        return Held(
            NEEDS_DEPLOY,
            told(
                _("the nodes or edges of %(graph)s have changed under version %(version)s: bump the version"),
                graph=name,
                version=version,
            ),
        )
    if versions:
        known = ", ".join(map(str, versions))
        return Held(
            NEEDS_MIGRATION,
            told(
                _("of %(graph)s there is version %(known)s, and no migration from %(version)s"),
                graph=name,
                known=known,
                version=version,
            ),
        )
    said = _("%(module)s cannot be imported (%(error)s)")
    broken = [told(said, module=module, error=error) for module, error in registry.broken.items()]
    return Held(
        NEEDS_DEPLOY, in_turn(broken) if broken else told(_("no code here declares %(graph)s"), graph=name)
    )
