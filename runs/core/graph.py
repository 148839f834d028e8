"""Graphs: named nodes, the edges they may take, the state they share. Checked when the module is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any  # states and node functions are the author's

from pydantic import BaseModel, ValidationError

from runs.core import codec, recurring
from runs.core.errors import CodecError, GraphError
from runs.core.migration import Migration, declared
from runs.core.retry import Retry
from runs.core.tool import explain

END = "__end__"
NAME_LENGTH = 100
ON_FAILURE = ("keep", "compensate")
ON_PARENT_END = ("cancel", "detach")  # what becomes of a child
DEFAULT_RETRY = Retry()


@dataclass(frozen=True, slots=True)
class Node:
    """One function of the author's, the nodes that may follow it, its retry policy and its time limit."""

    name: str
    fn: Callable[..., Any]
    then: tuple[str, ...]
    retry: Retry
    limit: timedelta
    where: str
    is_async: bool


class Graph:
    """What an author writes. The first node declared is where a run starts.

    `state` is a pydantic model, or None for a plain dict. `viewers` and `operators` are group names. A run that
    committed `max_steps` steps fails as loop_limit. Raises GraphError naming file and node when something is wrong.
    """

    def __init__(
        self,
        name: str,
        version: int = 1,
        state: type[BaseModel] | None = None,
        *,
        viewers: str = "",
        operators: str = "",
        max_steps: int = 10_000,
        on_failure: str = "keep",
        on_parent_end: str = "cancel",
        queue: str = "default",
    ) -> None:
        if not name.strip() or len(name) > NAME_LENGTH:
            raise GraphError(f"Graph({name!r}): give a name of 1 to {NAME_LENGTH} characters")
        if version < 1:
            raise GraphError(f"Graph({name!r}, version={version}): versions start at 1")
        if on_failure not in ON_FAILURE:
            raise GraphError(
                f"Graph({name!r}): on_failure={on_failure!r}; choose one of {', '.join(ON_FAILURE)}"
            )
        if on_parent_end not in ON_PARENT_END:
            raise GraphError(
                f"Graph({name!r}): on_parent_end={on_parent_end!r}; choose one of {', '.join(ON_PARENT_END)}"
            )
        self.name, self.version, self.state = name, version, state
        self.on_parent_end = on_parent_end
        self.viewers, self.operators = viewers, operators
        self.max_steps, self.on_failure, self.queue = max_steps, on_failure, queue
        self.nodes: dict[str, Node] = {}
        self.migrations: dict[int, Migration] = {}
        self.schedules: dict[str, recurring.Every] = {}
        if state is not None:
            codec.allow_annotations(state)

    def node(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        then: str | Sequence[str] = END,
        name: str | None = None,
        retry: Retry = DEFAULT_RETRY,
        limit: timedelta = timedelta(minutes=15),
    ) -> Any:
        """Declare a node; `then` names every node (or END) that may follow."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            called = name or function.__name__
            where = f"{function.__code__.co_filename}, node {called!r}"
            if called in self.nodes:
                raise GraphError(f"{where}: graph {self.name!r} has a node of that name already")
            if called == END or not called.strip() or len(called) > NAME_LENGTH:
                raise GraphError(f"{where}: not a usable name")
            if len(inspect.signature(function).parameters) != 2:
                raise GraphError(f"{where}: a node takes exactly (run, state)")
            targets = (then,) if isinstance(then, str) else tuple(then)
            if not targets:
                raise GraphError(f"{where}: then is empty; name the next node, or END")
            self.nodes[called] = Node(
                called, function, targets, retry, limit, where, inspect.iscoroutinefunction(function)
            )
            return function

        return declare if fn is None else declare(fn)

    def migrate(self, source: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare how a run of version `source` becomes one of the next: fn(state: dict, node) -> (state, node).

        "The next" is the version where the next migration begins, or the graph's own. Raises GraphError.
        """

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            self.migrations[source] = declared(self, source, function)
            return function

        return declare

    def every(
        self, cron: str, *, tz: str = "UTC", catch_up: str = "latest", most: int = 10, name: str | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare that runs start by themselves: fn(slot) gives the input of the one that was due at that moment.

        `slot` is in the time zone `tz`. The function must give the same for the same slot. Raises GraphError.
        """

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            called = name or function.__name__
            self.schedules[called] = recurring.declared(self, cron, tz, called, catch_up, most, function)
            return function

        return declare

    @property
    def first(self) -> str:
        return next(iter(self.nodes))

    @property
    def is_async(self) -> bool:
        return any(node.is_async for node in self.nodes.values())

    def check(self) -> None:
        """Unknown targets and unreachable nodes; called when the graph is registered."""
        if not self.nodes:
            raise GraphError(f"graph {self.name!r} has no nodes")
        for node in self.nodes.values():
            for target in node.then:
                if target != END and target not in self.nodes:
                    raise GraphError(
                        f"{node.where}: then names {target!r}, which graph {self.name!r} has not"
                    )
        reached, ahead = {self.first}, [self.first]
        while ahead:
            for target in self.nodes[ahead.pop()].then:
                if target != END and target not in reached:
                    reached.add(target)
                    ahead.append(target)
        if stray := [node for node in self.nodes.values() if node.name not in reached]:
            raise GraphError(f"{stray[0].where}: no node leads there")

    @property
    def shape(self) -> str:
        """Nodes and edges as canonical JSON: what must not change under one version number."""
        nodes = [[node.name, list(node.then)] for node in self.nodes.values()]
        return codec.encode({"first": self.first, "nodes": nodes}, sort=True)

    @property
    def fingerprint(self) -> str:
        return codec.digest(self.shape)

    def begin(self, given: Any) -> Any:
        """The first state from a start's input. Raises CodecError naming what does not fit."""
        if self.state is None:
            if not isinstance(given, dict):
                raise CodecError("$", f"graph {self.name!r} starts from a dict, not {type(given).__name__}")
            return given
        if isinstance(given, self.state):
            return given
        try:
            return self.state.model_validate(given)
        except ValidationError as error:
            raise CodecError(
                "$", f"the input does not fit {self.state.__name__}: {explain(error)}"
            ) from error

    def flatten(self, state: Any, like: Any = None, lists: codec.Lists | None = None) -> Any:
        """State -> plain tree; refuses a state that does not fit the model, for it could not be loaded again. `lists`
        is kept by whoever flattens and renews one run's state step after step."""
        if self.state is None:
            if not isinstance(state, dict):
                raise CodecError(
                    "$", f"the state of graph {self.name!r} is a dict, not {type(state).__name__}"
                )
            return codec.flatten(state, like)
        return codec.flatten_model(state, like, lists)

    def renew(self, tree: Any, lists: codec.Lists | None = None) -> Any:
        """`restore` for a tree that this process has flattened itself."""
        return codec.restore(tree) if self.state is None else codec.renew_model(self.state, tree, lists)

    def restore(self, tree: Any) -> Any:
        return codec.restore(tree) if self.state is None else codec.restore_model(self.state, tree)
