"""What a graph's nodes can reach by name: so another process finds the tools and rules that a row speaks of."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any  # whatever an author's module holds

from runs.core.graph import Graph
from runs.core.ledger import Entry
from runs.core.tool import Tool


def near(graph: Graph) -> list[Any]:
    """All that is near any of its nodes; often several times."""
    return [thing for node in graph.nodes.values() for thing in _near(node.fn)]


def tools_among(things: Iterable[Any]) -> list[Tool]:
    """Each once; two may have the same name."""
    return list({id(made): made for made in things if isinstance(made, Tool)}.values())


def tool_of(entry: Entry, tools: list[Tool]) -> Tool | None:
    """The one that made a write; of several with its name the one that declares the compensation it had then."""
    named = [made for made in tools if made.name == entry.name]
    if len(named) > 1:
        named = [made for made in named if made.compensate and made.compensate.name == entry.compensation]
    return named[0] if len(named) == 1 else None


def _near(fn: Any) -> Iterator[Any]:
    """What a node's function can reach by name: its module, modules it names, and what it closes over."""
    module = vars(sys.modules[fn.__module__])
    for name in fn.__code__.co_names:
        if isinstance(module.get(name), ModuleType):
            yield from vars(module[name]).values()
    yield from module.values()
    for cell in fn.__closure__ or ():
        with suppress(ValueError):  # nothing is bound yet
            yield cell.cell_contents
