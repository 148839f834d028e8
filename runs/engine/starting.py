"""`runs.start`: a run with its first checkpoint, in one transaction."""

from __future__ import annotations

from typing import Any  # inputs are any JSON or the graph's state model

from django.db import IntegrityError, transaction

from runs import registry
from runs.core import codec
from runs.core.errors import CodecError, DurableError
from runs.core.graph import Graph
from runs.core.words import is_storable
from runs.engine import clock
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.ids import uuid7
from runs.engine.state import StoredState
from runs.engine.transition import move
from runs.errors import Conflict, Invalid
from runs.models.run import PRIORITIES, Run
from runs.models.worker import GraphVersion
from runs.secrets import guard, refuse, refuse_in

KEY_LENGTH = 200


def start(
    graph: Graph | str,
    input: Any = None,
    key: str | None = None,
    by: Any = None,
    *,
    on_behalf_of: Any = None,
    priority: int = 2,
    labels: dict[str, str] | None = None,
) -> Run:
    """Start a run, or return the one that was started under the same key with the same input.

    `input` is a dict (or the graph's state model); `by` the user who asks. Raises Invalid when the input or the key
    does not fit, Missing for an unknown graph, Conflict when the key was used with another input.
    """
    known = registry.get(graph) if isinstance(graph, str) else graph
    key = _checked_key(key)
    if priority not in dict(PRIORITIES):
        raise Invalid(f"priority {priority!r}: choose 0 (urgent), 1, 2 or 3 (low).")
    tree = _first_state(known, {} if input is None else input)
    text_labels = _labels(labels)
    if key is not None and (earlier := _earlier(known, key, tree)) is not None:
        return earlier
    run_id = uuid7()

    def create() -> Run:
        with transaction.atomic():
            now = clock.now()
            remember(known, now)
            run = Run(
                id=run_id,
                root=run_id,
                graph=known.name,
                version=known.version,
                node=known.first,
                wake_at=now,
                queue=known.queue,
                priority=priority,
                key=key,
                labels=text_labels,
                created_by=by,
                on_behalf_of=on_behalf_of,
                created_at=now,
            )
            actor = f"user {by.get_username()}" if by is not None else "system"
            body = first_body(run, tree)
            move(run, "start", now, actor=actor, body=body)
            announce()
        return run

    boundary("start")
    try:
        run = durably(create, again=lambda: Run.objects.filter(pk=run_id).first() or create())
        boundary("started")
        return run
    except IntegrityError:
        earlier = _earlier(known, key, tree) if key is not None else None
        if earlier is None:
            raise
        return earlier


def remember(graph: Graph, now: Any) -> None:
    """Keep the graph's shape, so that its runs can be drawn when its code is gone."""
    GraphVersion.objects.get_or_create(
        graph=graph.name,
        version=graph.version,
        defaults={
            "fingerprint": graph.fingerprint,
            "shape": graph.shape,
            "viewers": graph.viewers,
            "operators": graph.operators,
            "seen_at": now,
        },
    )


def _checked_key(key: str | None) -> str | None:
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise Invalid("The run's key is blank; leave it out, or give one that says what the run is for.")
    if len(key) > KEY_LENGTH or not is_storable(key):
        said = f"at most {KEY_LENGTH}, and neither NUL nor lone surrogates"
        raise Invalid(f"The run's key has {len(key)} characters; {said}.")
    refuse(key, "key")
    return key


def _first_state(graph: Graph, given: Any) -> Any:
    try:
        tree = graph.flatten(graph.begin(given))
        if guard().find(codec.encode(tree)):
            refuse_in(tree)
        graph.restore(tree)
    except CodecError as error:
        raise Invalid(f"Graph {graph.name}: {error}", {error.path: [error.reason]}) from error
    except DurableError as error:
        raise Invalid(f"Graph {graph.name}: {error}") from error
    return tree


def first_body(run: Run, tree: Any) -> str:
    """The first snapshot; a long text in it goes to a blob."""
    state = StoredState(run.id)
    try:
        return state.begin(tree)
    except CodecError as error:
        raise Invalid(f"Graph {run.graph}: {error}", {error.path: [error.reason]}) from error


def _labels(labels: dict[str, str] | None) -> str:
    for name, value in (labels or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise Invalid(f"label {name!r}: names and values are text.")
    text = codec.dumps(labels or {})
    refuse(text, "labels")
    return text


def _earlier(graph: Graph, key: str, tree: Any) -> Run | None:
    run = Run.objects.filter(graph=graph.name, key=key).first()
    if run is None:
        return None
    if codec.encode(run.state_at(0), sort=True) != codec.encode(tree, sort=True):
        raise Conflict(f"Key {key!r} belongs to run {run.id}, which was started with another input.")
    return run
