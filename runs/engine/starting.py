"""`runs.start`: a run with its first checkpoint, in one transaction."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any  # inputs are any JSON or the graph's state model

from django.db import IntegrityError, transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core import codec
from runs.core.errors import CodecError, DurableError
from runs.core.graph import Graph
from runs.core.words import is_legible, is_storable
from runs.engine import clock
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.engine.ids import uuid7
from runs.engine.state import StoredState
from runs.engine.transition import move
from runs.errors import ILLEGIBLE, Conflict, Invalid, told
from runs.models.run import LONGEST_LANE, PRIORITIES, Run
from runs.models.tombstone import Tombstone
from runs.models.worker import GraphVersion
from runs.secrets import guard, refuse, refuse_in
from runs.unstorable import fault

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
    lane: str = "",
) -> Run:
    """Start a run, or return the one that was started under the same key with the same input.

    `input` is a dict (or the graph's state model); `by` the user who asks. Raises Invalid when the input or the key
    does not fit, Missing for an unknown graph, Conflict when the key was used with another input.
    """
    new = prepare(
        graph, input, key, by, on_behalf_of=on_behalf_of, priority=priority, labels=labels, lane=lane
    )
    if (earlier := new.earlier()) is not None:
        return earlier
    boundary("start")
    try:
        run = durably(new.create, again=lambda: Run.objects.filter(pk=new.id).first() or new.create())
        boundary("started")
        return run
    except IntegrityError:
        earlier = new.earlier()
        if earlier is None:
            raise
        return earlier


def prepare(
    graph: Graph | str,
    input: Any = None,
    key: str | None = None,
    by: Any = None,
    *,
    on_behalf_of: Any = None,
    priority: int = 2,
    labels: dict[str, str] | None = None,
    lane: str = "",
    actor: str = "",
) -> Start:
    """All of a start that writes no row, so also what calls the author's code; raises as `start` does."""
    known = registry.get(graph) if isinstance(graph, str) else graph
    key = _checked_key(known.name, key)
    if not isinstance(priority, int) or priority not in dict(PRIORITIES):
        raise Invalid(
            told(_("priority %(given)s: choose 0 (urgent), 1, 2 or 3 (low)."), given=repr(priority))
        )
    tree = _first_state(known, {} if input is None else input)
    actor = actor or (f"user {by.get_username()}" if by is not None else "system")
    return Start(
        known, tree, key, by, on_behalf_of, priority, _labels(labels), _checked_lane(lane), actor, uuid7()
    )


@dataclass(frozen=True, slots=True)
class Start:
    """A run that can be made: `create` does so, in a transaction."""

    graph: Graph
    tree: Any
    key: str | None
    by: Any
    on_behalf_of: Any
    priority: int
    labels: str
    lane: str
    actor: str
    id: uuid.UUID

    def create(self) -> Run:
        """Raises IntegrityError if another run of the graph has the key."""
        graph = self.graph
        with transaction.atomic():
            now = clock.now()
            remember(graph, now)
            run = Run(
                id=self.id,
                root=self.id,
                graph=graph.name,
                version=graph.version,
                node=graph.first,
                wake_at=now,
                queue=graph.queue,
                priority=self.priority,
                key=self.key,
                labels=self.labels,
                lane=self.lane,
                created_by=self.by,
                on_behalf_of=self.on_behalf_of,
                created_at=now,
            )
            body = first_body(run, self.tree)
            move(run, "start", now, actor=self.actor, body=body)
            announce()
        return run

    def earlier(self) -> Run | None:
        """The run that has the key already. Raises Conflict if it was started with another input."""
        if self.key is None:
            return None
        run = Run.objects.filter(graph=self.graph.name, key=self.key).first()
        if run is not None and Tombstone.objects.filter(run=run).exists():
            said = _("Key %(key)s belongs to run %(run)s, which was erased; a key is not used again.")
            raise Conflict(told(said, key=repr(self.key), run=run.id))
        if run is not None and codec.encode(run.state_at(0), sort=True) != codec.encode(self.tree, sort=True):
            said = _("Key %(key)s belongs to run %(run)s, which was started with another input.")
            raise Conflict(told(said, key=repr(self.key), run=run.id))
        return run


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


def _checked_key(graph: str, key: str | None) -> str | None:
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise Invalid(_("The run's key is blank; leave it out, or give one that says what the run is for."))
    if len(key) > KEY_LENGTH or not is_storable(key):
        said = _(
            "The run's key has %(count)s characters; at most %(most)s, and neither NUL nor lone surrogates."
        )
        raise Invalid(told(said, count=len(key), most=KEY_LENGTH))
    if not is_legible(key) and not Run.objects.filter(graph=graph, key=key).exists():
        raise Invalid(told(_("The run's key: %(fault)s"), fault=ILLEGIBLE), {"key": [ILLEGIBLE]})
    refuse(key, "key")
    return key


def _checked_lane(lane: str) -> str:
    if not isinstance(lane, str) or len(lane) > LONGEST_LANE or not is_storable(lane):
        said = _("The run's lane is a text of at most %(most)s characters, neither NUL nor surrogates.")
        raise Invalid(told(said, most=LONGEST_LANE))
    refuse(lane, "lane")
    return lane


def _first_state(graph: Graph, given: Any) -> Any:
    try:
        tree = graph.flatten(graph.begin(given))
        if guard().find(codec.encode(tree)):
            refuse_in(tree)
        graph.restore(tree)
    except CodecError as error:
        raise Invalid(_of_graph(graph.name, error), {error.path: [fault(error.reason)]}) from error
    except DurableError as error:
        raise Invalid(_of_graph(graph.name, error)) from error
    return tree


def _of_graph(name: str, error: DurableError) -> Promise:
    return told(_("Graph %(name)s: %(error)s"), name=name, error=fault(error))


def first_body(run: Run, tree: Any) -> str:
    """The first snapshot; a long text in it goes to a blob."""
    state = StoredState(run.id)
    try:
        return state.begin(tree)
    except CodecError as error:
        raise Invalid(_of_graph(run.graph, error), {error.path: [fault(error.reason)]}) from error


def _labels(labels: dict[str, str] | None) -> str:
    for name, value in labels.items() if isinstance(labels, dict) else ((labels, None),) if labels else ():
        if not all(isinstance(text, str) and is_storable(text) for text in (name, value)):
            raise Invalid(told(_("label %(name)s: names and values are text."), name=repr(name)))
    text = codec.dumps(labels or {})
    refuse(text, "labels")
    return text
