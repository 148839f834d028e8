"""What would become of the live runs if workers had this process's code: asked before a deploy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any  # of a report as JSON

from runs import registry
from runs.core import migration
from runs.core.executor import evidence
from runs.core.graph import Graph
from runs.engine.holding import changed_shapes, reason, served_here
from runs.engine.state import StoredState
from runs.engine.versions import Pair, migratable
from runs.models.run import Run
from runs.secrets import guard

IDS_TOLD = 20  # of the runs of one version


@dataclass
class Version:
    """Live runs of one version that this code does not serve as it is. `to`: where it migrates them, or None."""

    graph: str
    version: int
    runs: int = 0
    ids: list[str] = field(default_factory=list)
    to: int | None = None
    needs: str = ""
    why: str = ""
    failing: dict[str, str] = field(default_factory=dict)  # run id -> why its migration does not work

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass
class Report:
    """`stranded` would be held, `migratable` migrated; `changed` have another shape under the same version number."""

    stranded: list[Version] = field(default_factory=list)
    migratable: list[Version] = field(default_factory=list)
    changed: list[Pair] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        failing = any(version.failing for version in self.migratable)
        return not (self.stranded or self.changed or self.broken or failing)


def check_graphs() -> Report:
    """Each migration is tried on the stored states of the runs it is for; nothing is written."""
    changed = changed_shapes()
    report = Report(changed=sorted(changed), broken=dict(registry.broken))
    served = served_here(changed)
    graphs = [graph for graph in registry.served() if (graph.name, graph.version) not in changed]
    targets = migratable(graphs)
    pairs = Run.objects.live().order_by("graph", "version").values_list("graph", "version").distinct()
    for pair in pairs:
        if pair in targets:
            report.migratable.append(_tried(pair, targets[pair]))
        elif pair not in served:
            needs = reason(*pair, changed)
            report.stranded.append(_counted(Version(*pair, needs=needs.needs, why=needs.why)))
    return report


def _counted(version: Version) -> Version:
    runs = Run.objects.live().filter(graph=version.graph, version=version.version).order_by("pk")
    version.runs = runs.count()
    version.ids = [str(pk) for pk in runs.values_list("pk", flat=True)[:IDS_TOLD]]
    return version


def _tried(pair: Pair, graph: Graph) -> Version:
    version = _counted(Version(*pair, to=graph.version))
    for run in Run.objects.live().filter(graph=pair[0], version=pair[1]).order_by("pk").iterator():
        try:
            migration.migrated(graph, run.version, StoredState.load(run.pk, run.seq).tree, run.node)
        except Exception as error:
            version.failing[str(run.pk)] = guard().redact(evidence(error))
    return version
