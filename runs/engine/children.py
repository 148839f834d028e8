"""How a node's children are started, and how their ends are read, by the worker that drives their parent.

An entry and the child that answers it are one commit, so a crash leaves both or neither, and the next execution finds
the same child. A fan-out is one entry with counters; its children are made in several short commits, each of which goes
on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any  # states are the author's

from django.db import IntegrityError, transaction

from runs import registry
from runs.core import codec
from runs.core.child import ChildEnd
from runs.core.children import DEEPEST
from runs.core.errors import Permanent
from runs.core.graph import Graph
from runs.core.ledger import CHILD, Entry
from runs.core.outcomes import Lost, Stop
from runs.engine import blobs, taking_up
from runs.engine.ancestry import is_of_an_origin
from runs.engine.announce import announce
from runs.engine.boundaries import boundary
from runs.engine.child_ends import ends_of
from runs.engine.closing import line_of
from runs.engine.durably import durably_or_lost
from runs.engine.entry_rows import entry_of, row_of
from runs.engine.ids import uuid7
from runs.engine.lease import Lease
from runs.engine.portion import Portion
from runs.engine.starting import first_body, remember
from runs.engine.telling import CLOSED, answer, end_of, tell_all
from runs.engine.transition import begun
from runs.errors import Invalid, Missing
from runs.models import statuses
from runs.models.checkpoint import Checkpoint
from runs.models.entry import OPEN, LedgerEntry
from runs.models.fan_out import FanOut
from runs.models.run import Run

A_COMMIT = 100  # children of a fan-out at most; meanwhile nobody tells their parent anything


class RowChildren:
    """The part of the row ledger that is about children."""

    lease: Lease
    entries: dict[str, Entry]
    step: int

    def graph(self, graph: Graph | str) -> Graph:
        """One that workers of this code serve."""
        try:
            known = registry.get(graph) if isinstance(graph, str) else graph
        except Missing as error:
            raise Permanent(str(error)) from error
        if registry.find(known.name, known.version) is not known:
            raise Permanent(
                f"graph {known.name!r} version {known.version} is not served; put it into the graphs.py of an app"
            )
        return known

    def start(self, entry: Entry, graph: Graph, tree: Any) -> Entry:
        def begin(run: Run, now: datetime) -> LedgerEntry:
            if (row := self._row(run, entry)) is None:
                [child] = _begin(run, graph, [tree], now, detached=_is_detached(entry))
                row = self._insert(run, entry, now, child=child)
                announce()
            return row

        return self._act("start", entry, begin)

    def rejoin(self, entry: Entry) -> Entry:
        """Wait for a child that an earlier step has started; it may have ended."""

        def wait(run: Run, now: datetime) -> LedgerEntry:
            if (row := self._row(run, entry)) is not None:
                return row
            child = Run.objects.filter(pk=entry.child, fan_out=None).first()
            if child is None or child.parent_id != run.pk and not is_of_an_origin(run.pk, child):
                raise Permanent(
                    f"run {entry.child} is no child of this run; join takes what run.start returned"
                )
            if child.parent_id != run.pk and not child.told:
                raise Permanent(
                    f"run {child.id} has not ended, and is a child of run {child.parent_id}, of which this is a fork: "
                    "nobody would tell it"
                )
            row = self._insert(run, entry, now, child=child)
            if child.parent_id == run.pk and child.told:
                child, _ = Run.objects.lock(child.pk)
                taking_up.go_on(run, child, now)
                announce()
            if child.told:
                answer(LedgerEntry.objects.filter(pk=row.pk), end_of(child), now)
                row.refresh_from_db()
            return row

        return self._act("rejoin", entry, wait)

    def take_up(self, entry: Entry) -> Entry:
        """Children that were cancelled with this run go on; many of them in several commits."""
        after, reached, portion = -1, -1, Portion(A_COMMIT)

        def take_up_some(run: Run, now: datetime) -> LedgerEntry:
            nonlocal reached
            row = LedgerEntry.objects.get(pk=entry.id)
            if row.status != CLOSED:
                return row  # also after a fault: it was done
            if row.child_id is not None:
                taking_up.take_up(run, row, now)
            else:
                reached = taking_up.take_up_some(run, row, after, portion.begin(), now)
            announce()
            row.refresh_from_db()
            return row

        durably_or_lost(lambda: tell_all(self.lease.run_id))
        found = self._act("take up", entry, take_up_some)
        while found.status == CLOSED:
            portion.end()
            after = reached
            found = self._act("take up", found, take_up_some)
        return found

    def look(self, keys: list[str]) -> None:
        """Read these entries again; from here on what answers them is taken."""

        def look(lease: Lease) -> list[LedgerEntry] | None:
            with transaction.atomic():
                run, now = Run.objects.lock(lease.run_id)
                if not _holds(lease, run):
                    return None
                rows = list(LedgerEntry.objects.filter(run=run, step=self.step, key__in=keys))
                for row in rows:
                    _take(row, now)
            return rows

        boundary("look at child")
        for row in self._held(durably_or_lost(lambda: look(self.lease))):
            self._know(row)
        boundary("looked at child")

    def fan_out(self, entry: Entry, total: int, at_once: int) -> Entry:
        def begin(run: Run, now: datetime) -> LedgerEntry:
            if (row := self._row(run, entry)) is None:
                row = self._insert(run, entry, now)
                FanOut.objects.create(entry=row, total=total, at_once=at_once)
            return row

        return self._act("fan out", entry, begin)

    def spread(self, entry: Entry, graph: Graph, trees: list[Any]) -> Entry:
        """Make the children that are still missing, as many in each commit as it does in a moment."""
        missing, portion = True, Portion(A_COMMIT)

        def begin_some(run: Run, now: datetime) -> LedgerEntry:
            nonlocal missing
            fan_out = FanOut.objects.get(entry_id=entry.id)
            some = trees[fan_out.started : fan_out.started + portion.begin()]
            if some:
                begin_with = fan_out.free if fan_out.released == fan_out.started else 0
                at = {"fan_out": fan_out, "first": fan_out.started, "awake": begin_with}
                _begin(run, graph, some, now, detached=_is_detached(entry), **at)
                fan_out.released += min(begin_with, len(some))
                fan_out.started += len(some)
                fan_out.release(now)
                fan_out.save()
                announce()
            missing = fan_out.started < len(trees)
            return LedgerEntry.objects.get(pk=entry.id)

        while missing:
            found = self._act("spread", entry, begin_some)
            portion.end()
        return found

    def ends(self, entry: Entry) -> list[ChildEnd]:
        """What became of the entry's children, in order."""
        return durably_or_lost(lambda: list(ends_of(self.lease.run_id, entry)))

    # -- how an act is written

    def _act(self, name: str, entry: Entry, act: Callable[[Run, datetime], LedgerEntry]) -> Entry:
        """One commit under the run's lock. Done again after a fault, `act` finds what it did before."""
        entry.step = self.step

        def locked() -> LedgerEntry | None:
            with transaction.atomic():
                run, now = Run.objects.lock(self.lease.run_id)
                if not _holds(self.lease, run):
                    return None
                return _take(act(run, now), now)

        boundary(f"{name} child")
        try:
            row = self._held(durably_or_lost(locked))
        except IntegrityError as error:
            raise self._taken(entry, error) from error
        boundary(f"{name} child done")
        return self._know(row)

    def _held(self, written: Any) -> Any:
        if written is None:
            self.lease.lost.set()
            raise Stop(Lost(f"run {self.lease.run_id}: another worker or a verb has taken it"))
        return written

    def _row(self, run: Run, entry: Entry) -> LedgerEntry | None:
        return LedgerEntry.objects.filter(run=run, step=entry.step, key=entry.key).first()

    def _insert(self, run: Run, entry: Entry, now: datetime, child: Run | None = None) -> LedgerEntry:
        columns = row_of(entry, run.pk, {}, self.lease.worker, now)
        return LedgerEntry.objects.create(run=run, child=child, **columns)

    def _know(self, row: LedgerEntry) -> Entry:
        self.lease.questions_open = True
        with self.changing:
            self.entries[row.key] = entry_of(row)
        with self.lease.lock:
            self.lease.lines[row.key] = line_of(row)
        return self.entries[row.key]


def _holds(lease: Lease, run: Run) -> bool:
    return run.fence == lease.fence and run.status == statuses.RUNNING


def _take(row: LedgerEntry, now: datetime) -> LedgerEntry:
    if row.kind == CHILD and row.status != OPEN and row.taken_at is None:
        row.taken_at = now
        row.save(update_fields=["taken_at"])
    return row


def _is_detached(entry: Entry) -> bool:
    return codec.loads(entry.request)["on_parent_end"] == "detach"


def _begin(
    parent: Run,
    graph: Graph,
    trees: list[Any],
    now: datetime,
    *,
    detached: bool,
    fan_out: FanOut | None = None,
    first: int = 0,
    awake: int | None = None,
) -> list[Run]:
    """Children with their first checkpoints; of a fan-out the first `awake` are due, the others wait for their turn."""
    if parent.depth >= DEEPEST:
        raise Permanent(
            f"run {parent.id} has {parent.depth} ancestors, and {DEEPEST} are the most: does a graph start itself?"
        )
    remember(graph, now)
    children = [
        Run(
            id=child_id,
            parent=parent,
            root=parent.root,
            depth=parent.depth + 1,
            detached=detached,
            fan_out=fan_out,
            item=None if fan_out is None else first + place,
            graph=graph.name,
            version=graph.version,
            node=graph.first,
            queue=graph.queue,
            priority=parent.priority,
            lane=parent.lane,
            labels=parent.labels,
            created_by_id=parent.created_by_id,
            on_behalf_of_id=parent.on_behalf_of_id,
            created_at=now,
            wake_at=now if awake is None or place < awake else None,
        )
        for place, child_id in enumerate(sorted(uuid7() for _ in trees))
    ]
    starts = []
    for child, tree in zip(children, trees, strict=True):
        try:
            body = first_body(child, tree)
        except Invalid as error:
            raise Permanent(str(error)) from error
        blobs.share(parent.pk, child.pk, body)
        starts.append(begun(child, now, f"run {parent.short_id}", "", body))
    Run.objects.bulk_create(children)
    Checkpoint.objects.bulk_create(starts)
    return children
