"""Children of a run that is rehearsed in memory: kept here, and driven by the rehearsal."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any  # states are the author's

from runs.core import codec
from runs.core.child import ChildEnd
from runs.core.errors import Permanent
from runs.core.graph import Graph
from runs.core.ledger import OPEN
from runs.core.spending import Spent

if TYPE_CHECKING:
    from runs.core.ledger import Entry


@dataclass
class MemoryChild:
    id: str
    graph: Graph
    tree: Any
    end: ChildEnd | None = None


@dataclass(kw_only=True)
class MemoryChildren:
    """`graphs`: those that a node may start by name."""

    graphs: dict[str, Graph] = field(default_factory=dict)
    children: dict[str, list[MemoryChild]] = field(default_factory=dict)  # by the key of their entry
    spent: Spent = Spent()  # by the run and those that have ended below it

    def graph(self, graph: Graph | str) -> Graph:
        if isinstance(graph, Graph):
            return graph
        try:
            return self.graphs[graph]
        except KeyError:
            raise Permanent(f"there is no graph {graph!r}; give the graph itself, or graphs=") from None

    def start(self, entry: Entry, graph: Graph, tree: Any) -> Entry:
        entry.child = self._add(entry, graph, tree)
        return self.open(entry)

    def rejoin(self, entry: Entry) -> Entry:
        known = [child for some in self.children.values() for child in some if child.id == entry.child]
        if not known:
            raise Permanent(f"{entry.child} is no child of this run")
        self.children[entry.key] = known
        self.open(entry)
        self.look([entry.key])
        return entry

    def fan_out(self, entry: Entry, total: int, at_once: int) -> Entry:
        return self.open(entry)

    def spread(self, entry: Entry, graph: Graph, trees: list[Any]) -> Entry:
        for tree in trees[len(self.children.get(entry.key, ())) :]:
            self._add(entry, graph, tree)
        self.look([entry.key])
        return entry

    def take_up(self, entry: Entry) -> Entry:
        entry.status = OPEN
        self.look([entry.key])
        return entry

    def look(self, keys: list[str]) -> None:
        for key in keys:
            if all(child.end is not None for child in self.children[key]):
                entry = self.entries[key]
                entry.result, entry.status, entry.taken = codec.dumps({}), "done", True

    def ends(self, entry: Entry) -> list[ChildEnd]:
        return [child.end for child in self.children[entry.key] if child.end is not None]

    def _add(self, entry: Entry, graph: Graph, tree: Any) -> str:
        some = self.children.setdefault(entry.key, [])
        child = str(uuid.uuid5(uuid.UUID(self.run_id), f"{self.step}:{entry.key}:{len(some)}"))
        some.append(MemoryChild(child, graph, tree))
        return child
