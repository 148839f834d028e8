"""Which versions of graphs are looked after: served as they are, migrated to a newer one, or neither, so held."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Q

from runs.core.graph import Graph
from runs.engine import clock
from runs.engine.durably import durably
from runs.engine.starting import remember
from runs.models.run import Run
from runs.models.worker import GraphVersion, Worker

log = logging.getLogger(__name__)

Pair = tuple[str, int]

# An idle worker has no row, and may serve what is due: it comes within this time, and before a bell moves a run on.
PATIENCE = timedelta(seconds=3)
LOOK_SECONDS = 1.0


def of_pairs(pairs: Iterable[Pair]) -> Q:
    """Runs of these (graph, version) pairs."""
    among = Q()
    for name, version in sorted(pairs):
        among |= Q(graph=name, version=version)
    return among or Q(pk__in=[])


def targets(graphs: Iterable[Graph]) -> dict[Pair, Graph]:
    """The newest of these graphs that each version can be migrated to."""
    by_age = sorted(graphs, key=lambda graph: graph.version)
    return {(graph.name, source): graph for graph in by_age for source in graph.migrations}


def migratable(graphs: Iterable[Graph]) -> dict[Pair, Graph]:
    """The same of versions that none of these graphs is: what is served is not migrated."""
    graphs = list(graphs)
    served = {(graph.name, graph.version) for graph in graphs}
    return {pair: graph for pair, graph in targets(graphs).items() if pair not in served}


def servable(graphs: Iterable[Graph]) -> tuple[list[Graph], dict[str, str]]:
    """Those whose shape is the one stored under their version; the others with what to do about it."""
    served, refused = [], {}
    for graph in graphs:
        durably(lambda graph=graph: remember(graph, clock.now()))
        stored = GraphVersion.objects.get(graph=graph.name, version=graph.version)
        if stored.fingerprint == graph.fingerprint:
            served.append(graph)
        else:
            refused[f"{graph.name} {graph.version}"] = (
                "the graph has changed under this version: bump the version"
            )
            log.error(
                "Graph %s version %s has another shape than is stored: bump its version",
                graph.name,
                graph.version,
            )
    return served, refused


class OldRuns:
    """Due runs of versions that this process only migrates, and that no living worker serves as they are."""

    def __init__(self, graphs: Iterable[Graph], patience: timedelta = PATIENCE) -> None:
        self.targets = migratable(graphs)
        self.patience = patience
        self.found: set[Pair] = set()
        self.looked_at: float | None = None

    def due(self, now: datetime) -> Q | None:
        """The condition of such runs, or None where there are none. Looks at most once a second."""
        if not self.targets:
            return None
        if self.looked_at is None or clock.elapsed() - self.looked_at >= LOOK_SECONDS:
            self.found, self.looked_at = self._look(now), clock.elapsed()
        return of_pairs(self.found) & Q(wake_at__lte=now - self.patience) if self.found else None

    def _look(self, now: datetime) -> set[Pair]:
        old = Run.objects.due(now - self.patience).filter(of_pairs(self.targets)).order_by()
        pairs = set(old.values_list("graph", "version").distinct())
        return pairs - Worker.objects.seen_lately(now).serves() if pairs else pairs
