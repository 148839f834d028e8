"""Taking a due run: the fence grows, the lease begins, and what it waited for is looked at, in one transaction."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from itertools import count

from django.db import transaction
from django.db.models import Q, QuerySet

from runs import registry
from runs.conf import conf
from runs.core.errors import DurableError
from runs.core.graph import Graph
from runs.engine import clock
from runs.engine.awaited import may_go_on, take_answers
from runs.engine.boundaries import boundary
from runs.engine.closing import close_step, lines_of
from runs.engine.durably import durably
from runs.engine.family import ended
from runs.engine.lease import Lease
from runs.engine.standing import Standing
from runs.engine.state import StoredState
from runs.engine.telling import tell_of
from runs.engine.transition import move
from runs.engine.versions import PATIENCE, OldRuns, of_pairs
from runs.models import statuses
from runs.models.entry import DONE, INTERRUPT, LedgerEntry
from runs.models.limits import QueueLimit
from runs.models.run import Run

log = logging.getLogger(__name__)

MOST_DEATHS = 3
Taken = tuple[Run, list[LedgerEntry], Graph, clock.Reading, float]

EVERY_FOURTH = 4  # takes the oldest due run, whatever its priority


class Claimer:
    """The one claimer of a worker process.

    A run of a version that it only migrates is taken once it has been due for `patience` and no living worker serves
    that version; its drive begins with the migration.
    """

    def __init__(
        self, worker: str, graphs: list[Graph] | None = None, patience: timedelta = PATIENCE
    ) -> None:
        self.worker = worker
        self.graphs = {(g.name, g.version): g for g in (registry.served() if graphs is None else graphs)}
        self.old = OldRuns(self.graphs.values(), patience)
        self.queues = sorted({"default", *(graph.queue for graph in self.graphs.values())})
        self.standing = Standing()
        self.numbers = count(1)

    def claim(self, *, alone: bool, only: object = None) -> tuple[Lease, list[LedgerEntry]] | None:
        """The next due run and the entries of its step, or None when there is nothing to drive.

        `alone`: the process holds no other run, so it may take one whose last claim ended without word.
        `only`: a run id, to look at that run alone.
        """
        number = next(self.numbers)
        while True:
            boundary("claim")
            taken = self._look(alone, only, number)
            boundary("claimed")
            if taken is None:
                return None
            if isinstance(taken, Run):
                if _is_poison(taken):
                    durably(lambda run=taken: self._fail_as_poison(run))
                    tell_of(taken)
                continue  # recovered, parked again or ended: there was nothing to drive; look at the next
            run, entries, graph, reading, began = taken
            try:
                state = StoredState(run.id) if run.ending else StoredState.load(run.id, run.seq, live=True)
                if run.version == graph.version and not run.ending:  # else no node will see it
                    graph.restore(state.tree)
            except DurableError as error:
                self._spoilt(run, f"{type(error).__name__}: {error}")
                continue
            lease = Lease(run, graph, self.worker, reading, state)
            lease.until = began + conf.lease_seconds
            lease.questions_open = any(e.kind == INTERRUPT or e.status != DONE for e in entries)
            return lease, entries

    def _look(self, alone: bool, only: object, number: int) -> Run | Taken | None:
        """In all queues without a limit at once, and in each that has one; where it begins changes, so none starves."""
        oldest_first = number % EVERY_FOURTH == 0
        limited = sorted(self.standing.look().limited)
        places = [None, *limited]
        for place in range(len(places)):
            queue = places[(number + place) % len(places)]
            if queue is None or durably(lambda queue=queue: self.due(clock.now(), alone, queue).exists()):
                taken = durably(lambda queue=queue: self._take(alone, only, oldest_first, queue))
                if taken is not None:
                    return taken
        return None

    def due(self, now: datetime, alone: bool, limited: str | None = None) -> QuerySet[Run]:
        """Due runs that this worker may touch: those it serves, and those that a dead worker left.

        Of that limited queue, or of all queues without a limit.
        """
        standing = self.standing
        left = Q(leased_by__isnull=False)
        free = Q(leased_by=None) if alone else Q(leased_by=None, silent=0)
        drivable = of_pairs(pair for pair in self.graphs if pair[0] not in standing.stopped) & free
        # one queue by equality: then the index run_due gives the order, however many are due
        queues = [limited] if limited else [name for name in self.queues if name not in standing.limited]
        queue = Q(queue=queues[0]) if len(queues) == 1 else Q(queue__in=queues)
        found = queue & Q(wake_at__lte=now) & (left | drivable)
        old = self.old.due(now)  # whatever queue the old version was in
        if old is None:
            return Run.objects.filter(found)
        if standing.stopped:
            free &= ~Q(graph__in=standing.stopped)
        if standing.limited:
            old &= Q(queue=limited) if limited else ~Q(queue__in=standing.limited)
        return Run.objects.filter(found | old & (left | free))

    def _take(
        self, alone: bool, only: object, oldest_first: bool, limited: str | None = None
    ) -> Run | Taken | None:
        began = clock.elapsed()
        with transaction.atomic():
            # the limit's row first: who counts after it is the only one who does
            limit = limited and QueueLimit.objects.select_for_update().filter(queue=limited).first()
            runs = self.due(clock.now(), alone, limited)
            if only is not None:
                runs = runs.filter(pk=only)
            order = ["wake_at"] if oldest_first else ["priority", "wake_at"]
            if limit:
                run = limit.next_of(runs, clock.now(), order)
            else:
                run = runs.order_by(*order).select_for_update(skip_locked=True, of=("self",)).first()
            if run is None:
                return None
            now = clock.now()
            if run.leased_by is not None:
                return run if _is_poison(run) else self._recover(run, now)
            entries = []
            if run.status != statuses.CREATED or run.origin is not None:
                step = LedgerEntry.objects.filter(run=run, step=run.step + 1).select_related("decided_by")
                entries = list(step.order_by("id"))
            if run.status == statuses.WAITING and not may_go_on(run, entries, now):
                return run
            kind = "wake" if run.status == statuses.WAITING else "claim"
            lines = take_answers(entries, now)
            if kind == "wake":
                lines = lines_of(entries)  # also what a person settled meanwhile
            if limit:
                limit.took(run, now)
            move(
                run,
                kind,
                now,
                actor=self.worker,
                lines=lines,
                status=statuses.RUNNING,
                fence=run.fence + 1,
                wake_at=now + conf.lease,
                leased_by=self.worker,
                alone=bool(run.silent),
            )
            return run, entries, self._graph_of(run), clock.Reading(now), began

    def _graph_of(self, run: Run) -> Graph:
        return self.graphs.get((run.graph, run.version)) or self.old.targets[run.graph, run.version]

    def _recover(self, run: Run, now: datetime) -> Run:
        """A claim that ended without word: a death if the run was driven alone; past the bound it is poison."""
        deaths = run.deaths + run.alone
        silent = run.silent + 1
        left_by = _left_by(run)
        entries = LedgerEntry.objects.filter(run=run, step=run.step + 1)
        move(
            run,
            "lost",
            now,
            actor=self.worker,
            reason=left_by,
            lines=lines_of(entries),
            fence=run.fence + 1,
            leased_by=None,
            deaths=deaths,
            silent=silent,
            alone=False,
            wake_at=now + suspect_delay(silent),
        )
        log.warning("Run %s recovered: %s", run.id, left_by)
        return run

    def _fail_as_poison(self, seen: Run) -> None:
        """In a transaction of its own; unless its worker has come back meanwhile."""
        with transaction.atomic():
            run, now = Run.objects.lock(seen.pk)
            if run.fence != seen.fence or run.leased_by is None or run.wake_at > now:
                return
            deaths = run.deaths + run.alone
            lines = close_step(run, "cancelled", now, ended=True)
            left_by = _left_by(run)
            move(
                run,
                "fail",
                now,
                actor=self.worker,
                reason=f"Poison: {deaths} workers that drove it alone died. {left_by}",
                lines=lines.values(),
                status=statuses.FAILED,
                error_kind="poison",
                error=_of_poison(run, deaths, now),
                ending="",
                wake_at=None,
                leased_by=None,
                fence=run.fence + 1,
                deaths=deaths,
                silent=run.silent + 1,
                alone=False,
                finished_at=now,
            )
            ended(run, now)
        log.error("Run %s failed as poison: %s", run.id, left_by)

    def _spoilt(self, run: Run, error: str) -> None:
        """A stored state that cannot be read fails the run, which stays repairable; nothing was called."""

        def fail() -> None:
            with transaction.atomic():
                held, now = Run.objects.lock(run.pk)
                if held.fence != run.fence or held.ended:  # or the answer to this commit was lost
                    return
                lines = close_step(held, "cancelled", now, ended=True)
                move(
                    held,
                    "fail",
                    now,
                    actor=self.worker,
                    reason=error,
                    lines=lines.values(),
                    status=statuses.FAILED,
                    error_kind="bad_state",
                    error=error,
                    wake_at=None,
                    leased_by=None,
                    finished_at=now,
                )
                ended(held, now)

        durably(fail)
        tell_of(run)
        log.error("Run %s cannot be read: %s", run.id, error)


def _is_poison(run: Run) -> bool:
    """Found with a lease that has passed, and one death too many."""
    return run.leased_by is not None and run.deaths + run.alone > MOST_DEATHS


def _left_by(run: Run) -> str:
    return f"{run.leased_by} ended without word in node {run.node!r}"


def _of_poison(run: Run, deaths: int, now: datetime) -> str:
    what = "Undoing what it did" if run.ending else f"Its node {run.node!r}"
    said = f"{what} killed {deaths} workers, the last one {run.leased_by} ({now:%Y-%m-%d %H:%M:%S} UTC)."
    return f"{said} It was to end as {run.ending}: {run.error}".rstrip(": ") if run.ending else said


def suspect_delay(silent: int) -> timedelta:
    """None after the first silent end, then a second, doubling up to half a minute."""
    return timedelta(seconds=0 if silent <= 1 else min(2.0 ** (silent - 2), 30.0))
