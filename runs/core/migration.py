"""How a run comes to another version of its graph: the author's functions, each from one version to the next."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any  # states are the author's

from runs.core.codec_loose import restore_loosely
from runs.core.codec_tree import Plain
from runs.core.errors import GraphError, Permanent
from runs.core.retry import Retry

if TYPE_CHECKING:
    from runs.core.graph import Graph

LIMIT = timedelta(minutes=1)
RETRY = Retry(attempts=sys.maxsize, first=60.0, cap=3600.0)  # until there is code that can do it


@dataclass(frozen=True, slots=True)
class Migration:
    """`fn(state, node)` gives (state, node) of the version after `source`; both must be pure."""

    source: int
    fn: Callable[[Any, str], Any]
    where: str


def declared(graph: Graph, source: int, fn: Callable[[Any, str], Any]) -> Migration:
    """Checks what an author wrote. Raises GraphError naming file and function."""
    where = f"{fn.__code__.co_filename}, {fn.__name__!r}"
    if type(source) is not int or not 1 <= source < graph.version:
        raise GraphError(
            f"{where}: graph {graph.name!r} version {graph.version} migrates from an older version, not {source!r}"
        )
    if source in graph.migrations:
        raise GraphError(f"{where}: graph {graph.name!r} has a migration from version {source} already")
    if inspect.iscoroutinefunction(fn) or len(inspect.signature(fn).parameters) != 2:
        raise GraphError(f"{where}: a migration is a plain function of exactly (state, node)")
    return Migration(source, fn, where)


def path(graph: Graph, source: int) -> list[Migration]:
    """The migrations that lead from that version to the graph's, in order; empty where none begins there.

    Each leads to the version where the next one begins, and the last one to the graph's own.
    """
    if source not in graph.migrations:
        return []
    return [graph.migrations[number] for number in sorted(graph.migrations) if number >= source]


def route(graph: Graph, source: int) -> str:
    """The versions on the way, as people read them: 1 -> 2 -> 3."""
    return " -> ".join(map(str, [*(step.source for step in path(graph, source)), graph.version]))


def migrated(graph: Graph, source: int, tree: Plain, node: str) -> tuple[Plain, str]:
    """The stored state and the node of a run of version `source`, as they are in the graph's version.

    The first function gets the state as a dict, whatever model it had. Raises what the author's functions raise,
    Permanent for what they returned if that cannot be, CodecError for a state that does not fit the graph's model.
    """
    state: Any = restore_loosely(tree)
    for step in path(graph, source):
        returned = step.fn(state, node)
        if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], str):
            raise Permanent(f"{step.where}: returned {type(returned).__name__}; expected (state, node)")
        state, node = returned
    if node not in graph.nodes:
        known = ", ".join(graph.nodes)
        raise Permanent(f"{step.where}: leads to node {node!r}; version {graph.version} has {known}")
    return graph.flatten(graph.begin(state), tree), node
