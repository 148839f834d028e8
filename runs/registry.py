"""The graphs this process knows: found in `graphs.py` of every installed app, checked as they are added."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction
from typing import Any  # payloads are any JSON

from django.apps import apps
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from runs.agent import Agent
from runs.core import reach
from runs.core.codec_tree import path_text
from runs.core.errors import GraphError, Permanent
from runs.core.graph import Graph
from runs.core.rules import Rule
from runs.core.tool import Tool
from runs.errors import Invalid, Missing, told
from runs.secrets import guard
from runs.unstorable import fault

log = logging.getLogger(__name__)

_graphs: dict[tuple[str, int], Graph] = {}
_tools_of: dict[tuple[str, int], dict[str, Tool]] = {}  # two graphs may each have a tool of one name
_modules_of: dict[tuple[str, int], set[str]] = {}  # of the functions that a graph's nodes can reach
broken: dict[str, str] = {}  # module -> why it could not be imported; its runs are held, the others go on


def discover() -> None:
    """Import every app's graphs module. One that fails is written down and leaves the rest alone."""
    for app in apps.get_app_configs():
        module = f"{app.name}.graphs"
        if find_spec(module) is None:
            continue
        try:
            add_all(vars(import_module(module)).values())
        except Exception as error:
            broken[module] = guard().redact(f"{type(error).__name__}: {error}")
            log.exception("Graphs of %s are not served: the module cannot be imported", module)


def add_all(things: Iterable[Any]) -> None:
    for thing in list(things):
        if isinstance(thing, Graph):
            add(thing)


def add(graph: Graph) -> Graph:
    known = _graphs.get((graph.name, graph.version))
    if known is not None and known is not graph:
        raise GraphError(
            f"graph {graph.name!r} version {graph.version} is declared twice; bump one of the versions"
        )
    graph.check()
    _graphs[graph.name, graph.version] = graph
    near = _reach(graph)
    _tools_of[graph.name, graph.version] = {made.name: made for made in near if isinstance(made, Tool)}
    written = [node.fn for node in graph.nodes.values()] + [thing for thing in near if isfunction(thing)]
    _modules_of[graph.name, graph.version] = {fn.__module__ for fn in written}
    return graph


def remove(graph: Graph) -> None:
    _graphs.pop((graph.name, graph.version), None)
    _tools_of.pop((graph.name, graph.version), None)
    _modules_of.pop((graph.name, graph.version), None)


def served() -> list[Graph]:
    return list(_graphs.values())


def get(name: str, version: int | None = None) -> Graph:
    """The graph of that version, or its newest. Raises Missing naming what there is."""
    versions = {graph.version: graph for graph in _graphs.values() if graph.name == name}
    if not versions:
        known = ", ".join(sorted({graph.name for graph in _graphs.values()})) or _("none")
        said = _("There is no graph %(graph)s. Known graphs: %(known)s.")
        raise Missing(told(said, graph=repr(name), known=known))
    if version is None:
        return versions[max(versions)]
    if version not in versions:
        said = _("Graph %(graph)s has no version %(version)s here; it has %(known)s.")
        raise Missing(told(said, graph=repr(name), version=version, known=sorted(versions)))
    return versions[version]


def find(name: str, version: int) -> Graph | None:
    return _graphs.get((name, version))


def watched_by(groups: set[str]) -> list[str]:
    """Names of graphs whose viewers or operators are among these groups."""
    return sorted({graph.name for graph in _graphs.values() if {graph.viewers, graph.operators} & groups})


def operated_by(groups: set[str]) -> list[str]:
    return sorted({graph.name for graph in _graphs.values() if graph.operators in groups})


def check_payload(run: Any, request: dict[str, Any], payload: Any) -> Any:
    """The payload of a gated call as the tool will take it. Raises Invalid with what does not fit."""
    about = request.get("call")
    own = _tools_of.get((run.graph, run.version), {})
    made = own.get(about["tool"]) if about else None
    if made is None:
        return payload
    if not isinstance(payload, dict):
        said = _("The arguments of %(tool)s are an object, not %(kind)s.")
        raise Invalid(told(said, tool=made.name, kind=type(payload).__name__))
    try:
        return made.rebind(payload).arguments
    except Permanent as error:
        raise Invalid(fault(error), _by_path(error)) from error


def _by_path(error: Permanent) -> dict[str, list[Promise]]:
    """What is wrong with each argument, where pydantic has said it."""
    if not isinstance(error.__cause__, ValidationError):
        return {"$": [fault(error)]}
    wrong: dict[str, list[Promise]] = {}
    for problem in error.__cause__.errors():
        wrong.setdefault(path_text("$", list(problem["loc"])), []).append(fault(problem["msg"]))
    return wrong


def rule(name: str, version: int, reference: str) -> Rule | None:
    """The author's predicate that a request names (runs.core.rules.reference); None if it cannot be found here.

    Only among functions of modules that the graph itself reaches: a row names it, and a row is no reason to call
    whatever there is.
    """
    module, _colon, path = reference.partition(":")
    if module not in _modules_of.get((name, version), ()):
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isfunction(found) and found.__module__ == module else None


def tools_of(graph: Graph) -> list[Tool]:
    """The tools that the graph's nodes can reach by name, each once; two may have the same name."""
    return reach.tools_among(_reach(graph))


def _reach(graph: Graph) -> list[Any]:
    near = reach.near(graph)
    return near + [behind for thing in near if isinstance(thing, Agent) for behind in thing.reaches()]
