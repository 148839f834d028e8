"""A shift: one bounded time in which a process claims due runs and drives up to N of them at once.

The rows are the truth; what calls a shift (a bell in django-q2, `tick`, a test) is only a reason to look.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from runs import chores, registry
from runs.conf import conf
from runs.core import codec
from runs.core.executor import timed_out
from runs.core.graph import Graph
from runs.engine import clock, schedules, sql
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.event_loop import EventLoop
from runs.engine.host import boot_id, worker_name
from runs.engine.reclaim import hand_back, take_from_stuck
from runs.engine.versions import servable
from runs.models.run import Run
from runs.models.worker import Worker

log = logging.getLogger(__name__)

LINGER_SECONDS = 1.0
LONGEST_SECONDS = 600.0
IDLE_PAUSE_SECONDS = 0.05
CHORES_SECONDS = 1.0
LOST_GRACE_SECONDS = 0.5  # of a process that ends anyhow, for the threads that come back
IN_NODE = Drive.in_node.__code__

Room = tuple[bool, bool]  # for a run that takes a thread, and for one whose nodes are async


class Shift:
    """`seconds` and `steps` bound it; with neither it goes on for LONGEST_SECONDS. `work()` returns the steps done."""

    def __init__(
        self,
        *,
        seconds: float = LONGEST_SECONDS,
        steps: int | None = None,
        linger: float = LINGER_SECONDS,
        bell: str = "",
        runs_at_once: int | None = None,
        only: object = None,
    ) -> None:
        self.deadline = time.monotonic() + seconds
        self.most_steps = steps
        self.linger, self.bell, self.only = linger, bell, only
        self.runs_at_once = runs_at_once or (conf.shift_runs if steps is None else 1)
        self.async_runs_at_once = runs_at_once or (conf.shift_async_runs if steps is None else 1)
        self.name = worker_name()
        self.drives: dict[object, tuple[Drive, Future]] = {}
        self.stopping = threading.Event()
        self.ended = threading.Event()
        self.lost_threads = 0
        self.connections: dict[int, BaseDatabaseWrapper] = {}
        self.steps_done = 0
        self.pool = ThreadPoolExecutor(self.runs_at_once, thread_name_prefix="drive")
        self.loop = EventLoop()

    def work(self) -> int:
        """Claim and drive until the time is up, nothing is due any more, or someone asks to stop."""
        graphs, refused = servable(registry.served())
        self._sign_in(graphs, refused)
        beats = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beats.start()
        tending = threading.Thread(target=self._do_chores, name="chores", daemon=True)
        tending.start()
        try:
            self._claim_and_drive(graphs)
        finally:
            self._wind_down()
            self.ended.set()
            beats.join(conf.heartbeat_seconds + 5)
            tending.join(max(self.deadline - time.monotonic(), 0) + conf.grace_seconds)
            Worker.objects.filter(pk=self.name).delete()
        return self.steps_done

    # -- the one loop

    def _claim_and_drive(self, graphs: list[Graph]) -> None:
        claimers: dict[Room, Claimer] = {}
        idle_since = time.monotonic()
        while True:
            self._reap()  # first: its steps may have been the last ones allowed
            if self._over():
                return
            room = self._room()
            if room not in claimers:
                claimers[room] = Claimer(self.name, [graph for graph in graphs if room[graph.is_async]])
            if not claimers[room].graphs or not self._may_claim():
                self._wait_for_one()
                continue
            taken = claimers[room].claim(alone=not self.drives, only=self.only)
            if taken is None:
                if self.drives or self.loop.threads.calls.under_way(
                    bounded=True
                ):  # others' turn comes meanwhile
                    self._wait_for_one()
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since >= self.linger:
                    return
                else:
                    time.sleep(IDLE_PAUSE_SECONDS)
                continue
            idle_since = time.monotonic()
            self._begin(Drive(*taken, most_steps=self._steps_left()))

    def _over(self) -> bool:
        enough = self.most_steps is not None and self.steps_done >= self.most_steps
        return (
            self.stopping.is_set() or time.monotonic() >= self.deadline or enough or bool(self.lost_threads)
        )

    def _steps_left(self) -> int | None:
        return None if self.most_steps is None else self.most_steps - self.steps_done

    def _room(self) -> Room:
        """Whether one more run fits, of a graph that takes a thread and of one that only waits in the loop."""
        in_loop = sum(drive.lease.graph.is_async for drive, _ in self.drives.values())
        return len(self.drives) - in_loop < self.runs_at_once, in_loop < self.async_runs_at_once

    def _may_claim(self) -> bool:
        """No more are claimed beside a suspect, nor while an old suspect waits for an empty process."""
        if not self.drives:
            return True
        if any(drive.lease.alone for drive, _ in self.drives.values()):
            return False
        return not self._suspect_starves()

    def _suspect_starves(self) -> bool:
        since = clock.now() - timedelta(seconds=conf.lease_seconds)
        return Run.objects.filter(silent__gt=0, leased_by=None, wake_at__lt=since).exists()

    def _begin(self, drive: Drive) -> None:
        run_id = drive.lease.run_id
        if drive.lease.graph.is_async:
            driving = drive.run_async(self.loop.threads)
            future = asyncio.run_coroutine_threadsafe(driving, self.loop.begin())
        else:
            future = self.pool.submit(self._in_thread, drive)
        self.drives[run_id] = (drive, future)

    def _in_thread(self, drive: Drive) -> object:
        """A thread keeps its connection for the next run; the shift closes them all at its end."""
        self.connections[threading.get_ident()] = connections["default"]
        return drive.run()

    def _wait_for_one(self) -> None:
        """Until a drive ends, but not long: a new run may be due meanwhile."""
        until = time.monotonic() + IDLE_PAUSE_SECONDS
        while time.monotonic() < until and not any(future.done() for _, future in self.drives.values()):
            time.sleep(0.002)
        self._reap()

    def _reap(self) -> None:
        for run_id, (drive, future) in list(self.drives.items()):
            if run_id not in self.drives:
                continue
            if future.done():
                del self.drives[run_id]
                self.steps_done += drive.steps_done
                if not future.cancelled() and (error := future.exception()):
                    log.error("Run %s: the drive ended by a fault", run_id, exc_info=error)
            elif self._stuck(drive):
                self._lose(run_id, drive)
        if lost := self.loop.threads.calls.count_lost():
            self.lost_threads += lost
            log.error("%s calls of async runs are over their limit; their threads are lost", lost)

    def _stuck(self, drive: Drive) -> bool:
        """A sync node over its limit, or an async one that blocks its loop so long.

        Neither can be stopped from here: the run is taken from it.
        """
        if not drive.inside_node:
            return False
        over_at = drive.node_since + drive.bounds.limit.total_seconds()
        if time.monotonic() <= over_at:
            return False
        if not drive.bounds.is_async:
            return True
        return self.loop.has_stood_since(over_at) and self.loop.who_runs(IN_NODE) in (drive, None)

    def _lose(self, run_id: object, drive: Drive) -> None:
        _, future = self.drives.pop(run_id)
        drive.lease.lost.set()
        take_from_stuck(drive.lease, timed_out(drive.bounds).message)
        if not drive.lease.graph.is_async:
            self.lost_threads += 1  # of others, the thread of the call is counted
        elif drive.bounds.is_async:
            self.lost_threads += 1
            self._leave_the_loop()
        else:
            future.cancel()
        log.error("Run %s: node %s is over its limit; its thread is lost", run_id, drive.lease.node)

    def _leave_the_loop(self) -> None:
        """One of its nodes blocks it: the runs beside go on in another process."""
        for run_id, (drive, _) in list(self.drives.items()):
            if drive.lease.graph.is_async:
                del self.drives[run_id]
                drive.lease.lost.set()
                hand_back(drive.lease, "another run blocked the event loop")

    def _wind_down(self) -> None:
        """Hand back what is between nodes and wait for the nodes, whose hearts still beat: their limits bound them.

        Asked to stop, wait no longer than the grace, and leave the rest to their leases.
        """
        for drive, _ in self.drives.values():
            drive.stop.set()
        since = None
        while self.drives or self.loop.threads.calls.under_way(bounded=True):
            if self.stopping.is_set():
                since = since or time.monotonic()
                if time.monotonic() - since >= conf.grace_seconds:
                    break
            self._wait_for_one()
        for _, future in self.drives.values():
            future.cancel()  # stops an async node; a thread goes on until its next question
        self.pool.shutdown(wait=False, cancel_futures=True)
        for kept in self.connections.values():
            kept.inc_thread_sharing()
            kept.close()
        self.lost_threads += self.loop.end(LOST_GRACE_SECONDS if self.lost_threads else conf.grace_seconds)
        if self.drives or self.lost_threads:
            log.warning("The shift ends with %s runs inside a node; their leases run out", len(self.drives))

    def _do_chores(self) -> None:
        """Due work beside runs, once in any shift and then each second; a shift for one run leaves it to others."""
        if self.only is not None:
            return
        while not self._over():
            try:
                chores.do_due(self._over)
            except Exception:
                log.exception("Chores cannot be looked up; they stay due")
                connection.close()
            if self.ended.wait(CHORES_SECONDS):
                break
        connection.close()

    # -- the worker's row

    def _sign_in(self, graphs: list[Graph], refused: dict[str, str]) -> None:
        now = clock.now()
        Worker.objects.filter(seen_at__lt=now - timedelta(days=1)).delete()
        Worker.objects.create(
            name=self.name,
            host=platform.node()[:100],
            boot_id=boot_id(),
            pid=os.getpid(),
            started_at=now,
            seen_at=now,
            serves=codec.dumps([[graph.name, graph.version] for graph in graphs]),
            refuses=codec.dumps(refused),
            bell=self.bell,
        )
        if not self.bell and self.only is None:  # else the bell has done it
            schedules.sync()

    def _beat(self) -> None:
        """Every third of a lease: move the leases that are still ours, and learn whether to stop."""
        while not self.ended.wait(conf.heartbeat_seconds):
            try:
                self._beat_once()
            except Exception:
                log.exception("A heartbeat did not reach the database; the leases run on until they end")
                connection.close()
        connection.close()

    def _leave(self, gone: list[tuple[object, int, Drive]]) -> None:
        """What was cancelled, or taken by another, is driven no further: an async call hangs up, a thread stops at its
        next question. One that has just parked or ended by itself is not ours any more either, and has its fence."""
        fences = (
            dict(Run.objects.filter(pk__in=[run for run, *_ in gone]).values_list("pk", "fence"))
            if gone
            else {}
        )
        for run, fence, drive in gone:
            lease = drive.lease
            if fences.get(run) == fence or lease.fence != fence or lease.version != lease.graph.version:
                continue  # its own migration raises the fence as well
            lease.lost.set()
            driven = self.drives.get(run)
            if driven is not None and driven[0] is drive and lease.graph.is_async:
                driven[1].cancel()

    def _beat_once(self) -> None:
        held = [(drive.lease.run_id, drive.lease.fence, drive) for drive, _ in list(self.drives.values())]
        began = clock.elapsed()
        now = clock.now()
        mine = sql.heartbeat(self.name, [(run, fence) for run, fence, _ in held], now + conf.lease)
        for run, _, drive in held:
            if run in mine:
                drive.lease.extended(began)
        self._leave([(run, fence, drive) for run, fence, drive in held if run not in mine])
        holds = codec.dumps([[str(run), fence] for run, fence, _ in held])
        with transaction.atomic():
            Worker.objects.filter(pk=self.name).update(seen_at=now, holds=holds)
            row = Worker.objects.filter(pk=self.name).values_list("stopping", flat=True).first()
        if row:
            self.stopping.set()
            for _, _, drive in held:
                drive.stop.set()
