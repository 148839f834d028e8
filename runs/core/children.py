"""Runs that a node starts: one at a time, or one for each of many items; and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any  # inputs and results are the author's

from runs.core import codec
from runs.core.asking import Asking
from runs.core.child import Child
from runs.core.commands import Work
from runs.core.errors import CodecError, Diverged, Permanent
from runs.core.graph import ON_PARENT_END, Graph
from runs.core.keys import resolve
from runs.core.ledger import CANCELLED, CHILD, DONE, OPEN, Entry
from runs.core.outcomes import Fails, Stop, Waits

AT_ONCE = 50
MOST_ITEMS = 10_000  # of one map
MOST_STARTED = 1_000  # by one step: each is an entry, and all are read whenever the run is taken
DEEPEST = 16  # ancestors of a run
ADVICE = "give the child an explicit key if it is the same thing in other words"


class Children(Asking):
    """The part of a node's questions that other runs answer."""

    def start(self, graph: Graph | str, given: Any, key: str | None, on_parent_end: str | None) -> Work:
        """The child that was started under this key, or a new one."""
        yield from self.before_more()
        graph = yield partial(self.ledger.graph, graph)
        digest = _digest(given)
        name = (
            self.keys.named(key, "key")
            if key is not None
            else self.keys.counted(f"{graph.name}:{digest[:8]}")
        )
        if key is not None and name not in self.ledger.entries:
            name, earlier = yield from self._started_earlier(graph, name)
            if earlier is not None:
                return Child(earlier.child, graph.name)
        request = codec.dumps(
            {"graph": graph.name, "input": given, "on_parent_end": _on_end(graph, on_parent_end)}
        )
        entry, is_new = yield from self._entry(graph, name, request, explicit=key is not None)
        if is_new:
            started = sum(entry.kind == CHILD for entry in self.ledger.entries.values())
            if started >= MOST_STARTED:
                raise Permanent(
                    f"one step starts at most {MOST_STARTED:,} children; use run.map for so many items"
                )
            entry = yield partial(self.ledger.start, entry, graph, _first_state(graph, given, "the input"))
        return Child(entry.child, graph.name)

    def join(self, children: Sequence[Child]) -> Work:
        """Their ends, in order, once all have ended."""
        entries = []
        for child in children:
            entries.append((yield from self._entry_of(child)))
        entries = yield from self._looked_at(entries)
        if waits := tuple(entry.key for entry in entries if not _is_over(entry)):
            raise Stop(Waits(waits))
        ends = []
        for entry in entries:
            ends.append((yield from self._end_of(entry)))
        return ends

    def map(
        self,
        graph: Graph | str,
        inputs: Sequence[Any],
        at_once: int,
        key: str | None,
        on_parent_end: str | None,
    ) -> Work:
        """A child for each item, at most `at_once` of them alive; their ends, in order, once all have ended."""
        yield from self.before_more()
        graph = yield partial(self.ledger.graph, graph)
        items = list(inputs)
        if not items:
            return []
        _check_size(len(items), at_once)
        digest = _digest(items)
        name = (
            self.keys.named(key, "key")
            if key is not None
            else self.keys.counted(f"{graph.name}:{digest[:8]}")
        )
        if key is not None and name not in self.ledger.entries:
            yield from self._refuse_mapped_earlier(name)
        about = {"items": len(items), "digest": digest, "at_once": at_once}
        request = codec.dumps({"graph": graph.name, **about, "on_parent_end": _on_end(graph, on_parent_end)})
        entry, is_new = yield from self._entry(graph, name, request, explicit=key is not None)
        if not _is_over(entry):
            trees = [_first_state(graph, item, f"item {number}") for number, item in enumerate(items)]
            if is_new:
                entry = yield partial(self.ledger.fan_out, entry, len(items), at_once)
            _refuse_other_items(entry, len(items), digest)
            entry = yield partial(self.ledger.spread, entry, graph, trees)
        if not _is_over(entry):
            raise Stop(Waits((entry.key,)))
        return (yield partial(self.ledger.ends, entry))

    def forgotten(self) -> list[Entry]:
        """Children that this step started and that this execution has not asked for."""
        return [entry for entry in self._started() if entry.status == OPEN and entry.key not in self.asked]

    # -- entries

    def _entry(self, graph: Graph, name: str, request: str, explicit: bool) -> Work:
        """(the entry of a start, whether it is still to be opened)."""
        key = self.current(name)
        entry = self.ledger.entries.get(key)
        self.asked.add(key)
        if entry is None:
            for other in self._started():
                if other.name == graph.name and other.key not in self.asked and other.status in (OPEN, DONE):
                    error = Diverged(request, f"{other.key} {other.request}", ADVICE)
                    raise Stop(Fails("diverged", str(error)))
            entry = Entry(key, CHILD, graph.name, request, codec.digest(request))
            if explicit:
                entry.idempotency_key = resolve(key, self.ledger.run_id)
            self.ledger.admit(entry)
            return entry, True
        if entry.kind != CHILD or entry.name != graph.name:
            raise Permanent(
                f"key {key!r} is a {entry.kind} of this step ({entry.name}), and was asked for as a run of "
                f"{graph.name!r}; give one of them another key"
            )
        if entry.request != request:
            yield partial(self.ledger.remark, entry, "other_request", request)
        return (yield from self._taken_up(entry)), False

    def _taken_up(self, entry: Entry) -> Work:
        """Of a run that ended and was repaired: its children go on, and none is started a second time."""
        return (yield partial(self.ledger.take_up, entry)) if entry.status == CANCELLED else entry

    def _started_earlier(self, graph: Graph, key: str) -> Work:
        """An explicit key holds in the whole run, and without {run_id} over all runs: (the key, what it holds)."""
        name, number = key, 1
        while (held := (yield partial(self.ledger.holder, resolve(name, self.ledger.run_id)))) is not None:
            run_id, entry = held
            if run_id != self.ledger.run_id:
                raise Permanent(
                    f"key {key!r} belongs to run {run_id}; put {{run_id}} into the key, or use another"
                )
            if not entry.aside:
                break
            number += 1
            name = f"{key}~{number}"
        else:
            return name, None
        if entry.kind != CHILD or entry.name != graph.name or entry.child is None:
            raise Permanent(f"key {key!r} was used in step {entry.step} for {entry.name}; use another key")
        return name, entry

    def _refuse_mapped_earlier(self, key: str) -> Work:
        """Many under an explicit key are made once in a run, and also by none of its forks."""
        held = yield partial(self.ledger.holder, resolve(key, self.ledger.run_id))
        if held is not None and not held[1].past:
            run_id, entry = held
            if run_id == self.ledger.run_id and entry.status == CANCELLED:
                raise Permanent(
                    f"key {key!r} is of children that were cancelled in step {entry.step}: a retry takes them up, a "
                    "move leaves them behind"
                )
            where = f"in step {entry.step}" if run_id == self.ledger.run_id else f"by run {run_id}"
            raise Permanent(f"key {key!r} was used {where} for {entry.name}; use another key")

    def _entry_of(self, child: Child) -> Work:
        """That of its start, or one that waits for its end, where an earlier step has started it."""
        if not isinstance(child, Child):
            raise Permanent(f"join: {child!r} is no child; give what run.start returned")
        mine = (entry for entry in self.ledger.entries.values() if entry.child == child.id)
        entry = next((entry for entry in mine if not entry.past), None)
        if entry is None:
            key, number = f"end:{child.id}", 1
            while key in self.ledger.entries:
                number += 1
                key = f"end:{child.id}~{number}"
            request = codec.dumps({"run": child.id})
            entry = Entry(key, CHILD, child.graph, request, codec.digest(request), child=child.id)
            entry = yield partial(self.ledger.rejoin, entry)
        self.asked.add(entry.key)
        return (yield from self._taken_up(entry))

    def _end_of(self, entry: Entry) -> Work:
        if not _is_over(entry):
            raise Stop(Waits((entry.key,)))
        [end] = yield partial(self.ledger.ends, entry)
        return end

    def _looked_at(self, entries: list[Entry]) -> Work:
        """As they are now: a child may have ended since the run was taken."""
        keys = [entry.key for entry in entries if not _is_over(entry)]
        if keys:
            yield partial(self.ledger.look, keys)
        return [self.ledger.entries[entry.key] for entry in entries]

    def _started(self) -> list[Entry]:
        children = [entry for entry in self.ledger.entries.values() if entry.kind == CHILD]
        return [entry for entry in children if not entry.key.startswith(f"end:{entry.child}")]


def _is_over(entry: Entry) -> bool:
    return entry.status == DONE and entry.taken


def _first_state(graph: Graph, given: Any, what: str) -> Any:
    try:
        tree = graph.flatten(graph.begin({} if given is None else given))
        graph.restore(tree)
    except CodecError as error:
        raise Permanent(f"graph {graph.name!r}, {what}: {error}") from error
    return tree


def _digest(given: Any) -> str:
    """Of what the author gave, not of the first state: a new version of the graph may fill it in differently."""
    try:
        return codec.digest(codec.dumps(given))
    except CodecError as error:
        raise Permanent(f"a child's input cannot be stored: {error}") from error


def _on_end(graph: Graph, on_parent_end: str | None) -> str:
    chosen = on_parent_end or graph.on_parent_end
    if chosen not in ON_PARENT_END:
        raise Permanent(f"on_parent_end={chosen!r}; choose one of {', '.join(ON_PARENT_END)}")
    return chosen


def _check_size(count: int, at_once: int) -> None:
    if count > MOST_ITEMS:
        raise Permanent(
            f"map: {count:,} items, {MOST_ITEMS:,} are the most; start children that map a part each"
        )
    if type(at_once) is not int or at_once < 1:
        raise Permanent(f"map: at_once={at_once!r}; give a whole number from 1")


def _refuse_other_items(entry: Entry, count: int, digest: str) -> None:
    """Under an explicit key the recorded request wins; but its items are kept only as the children they became."""
    asked = codec.loads(entry.request)
    if "items" not in asked:
        raise Permanent(
            f"key {entry.key!r} is one child of this step, and was asked for as a map; use another key"
        )
    if (asked["items"], asked["digest"]) != (count, digest):
        raise Permanent(
            f"key {entry.key!r}: the items are not those that the map began with; make them with run.once, "
            "or leave out the key"
        )
