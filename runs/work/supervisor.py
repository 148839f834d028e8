"""Keeps the worker processes and the bell of this machine alive, and ends all of them when asked to."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import time
from contextlib import suppress
from types import FrameType

import psutil
from django.db import DatabaseError, InterfaceError, connections

from runs.conf import conf
from runs.engine.reclaim import hand_back_for
from runs.models.worker import Worker
from runs.work import presence, process_tree
from runs.work.bell import ANEW_SIGNAL
from runs.work.supervised import Child
from runs.work.tasks import STOP_SIGNAL

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
UNANSWERED_SECONDS = 10.0
UNEASY_SECONDS = 5.0  # from here on another cluster gets ready, so that a restart costs no start
SLOWEST_START_SECONDS = 60.0
RESTART_GRACE_SECONDS = 1.0
BELL_PATIENCE_SECONDS = 1.0
ASKS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOT_WORKERS = 4  # processes of a cluster beside its workers: the main one, sentinel, monitor, pusher


class Supervisor:
    """`watch()` returns when a signal asked to stop and nothing is left; a second signal kills at once."""

    def __init__(self) -> None:
        # Its own: what is rung here is for the code that rings. Another's workers may be of another release.
        self.queue = f"durableweb-{secrets.token_hex(6)}"
        self.cluster = self._new_cluster()
        self.spare: Child | None = None
        self.bell = Child("bell", "bell", "--report", "--queue", self.queue, reports=True)
        self.asked = 0
        self.restarts = 0
        self.up_at: float | None = None  # monotonic: all processes of the cluster are there

    def watch(self) -> None:
        for number in ASKS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
                signal.signal(number, self._ask)
        log.info("The supervisor starts %s worker processes and the bell", conf.workers)
        try:
            while not self.asked:
                self.look()
                time.sleep(LOOK_SECONDS)
        finally:
            self._stop()

    def look(self) -> None:
        """One round: start what is to be started, and see whether the cluster answers its bells."""
        cluster = self.cluster.pid
        self.cluster.look()
        self.bell.look()
        if self.cluster.pid != cluster:
            self.up_at = None
        if self.up_at is None and self._is_up():
            self.up_at = time.monotonic()
        unanswered = min(self._unanswered_seconds(), self._up_seconds())
        if unanswered >= UNANSWERED_SECONDS:
            self._restart(unanswered)
        elif unanswered >= UNEASY_SECONDS and self.spare is None:
            self.spare = self._new_cluster()
            self.spare.start(on_word=True)
        elif unanswered < UNEASY_SECONDS and self.spare is not None:
            self.spare.end()
            self.spare = None

    def _unanswered_seconds(self) -> float:
        with suppress(ValueError):
            return float(self.bell.said or 0)
        return 0.0  # not the bell's own word: a module that prints when it is imported

    def _restart(self, unanswered: float) -> None:
        self.restarts += 1
        log.warning(
            "Watchdog: no worker has answered a bell for %.1f s though another shift may live;"
            " the cluster is started anew (restart %s)",
            unanswered,
            self.restarts,
        )
        at_work = _named({process.pid for process in process_tree.family(self.cluster.process.pid)})
        self._end_cluster(RESTART_GRACE_SECONDS * bool(at_work), "the watchdog started the cluster anew")
        if self.spare is not None:
            self.cluster, self.spare = self.spare, None
            self.cluster.go()  # if it has died meanwhile, the next look starts it again
        self.up_at = None
        self.bell.tell(ANEW_SIGNAL)

    def _stop(self) -> None:
        log.info("The supervisor stops; nodes that run have %g s to end", conf.grace_seconds)
        self.bell.end(BELL_PATIENCE_SECONDS)
        if self.spare is not None:
            self.spare.end()
        self._end_cluster(conf.grace_seconds, "the supervisor ended the worker")
        log.info("The supervisor has stopped; its watchdog restarted the cluster %s times", self.restarts)

    # -- the cluster

    def _new_cluster(self) -> Child:
        return Child("cluster", "qcluster", "--name", self.queue)

    def _is_up(self) -> bool:
        """A start that takes very long counts as done: then the watchdog may judge it."""
        if self.cluster.pid is None:
            return False
        if time.monotonic() - self.cluster.started_at > SLOWEST_START_SECONDS:
            return True
        return len(process_tree.family(self.cluster.pid)) >= conf.workers + NOT_WORKERS

    def _up_seconds(self) -> float:
        return time.monotonic() - self.up_at if self.up_at is not None else 0.0

    def _end_cluster(self, grace_seconds: float, reason: str) -> None:
        """Ask its shifts to hand back and end; kill the rest; hand back for whom that ended. No death is counted."""
        if self.cluster.process is None:
            return
        until, asked = time.monotonic() + grace_seconds, self.asked
        members = process_tree.family(self.cluster.process.pid)
        _ask_shifts_to_stop(self.cluster.process.pid)
        self.cluster.tell(signal.SIGTERM)
        workers = _say_stopping({process.pid for process in members})
        while time.monotonic() < until and self.asked == asked:
            if process_tree.wait_until_gone(members, LOOK_SECONDS):
                break
        pids = self.cluster.end()
        for name in workers | _named(pids):
            _hand_back(name, reason)
        connections.close_all()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1


def _ask_shifts_to_stop(cluster: int) -> None:
    """The workers are grandchildren of the cluster's main process; all of these take the signal."""
    with suppress(psutil.Error):
        for sentinel in psutil.Process(cluster).children():
            for process in sentinel.children():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, STOP_SIGNAL)


def _say_stopping(pids: set[int]) -> set[str]:
    """Mark the rows of these processes, and name them; without a database there is nobody to tell."""
    try:
        names = _named(pids)
        Worker.objects.filter(name__in=names).update(stopping=True)
        return names
    except (DatabaseError, InterfaceError) as error:
        log.warning("The workers' rows cannot be marked as stopping: %s", error)
        connections.close_all()
        return set()


def _named(pids: set[int]) -> set[str]:
    try:
        return {worker.name for worker in presence.here(Worker.objects.filter(pid__in=pids))}
    except (DatabaseError, InterfaceError) as error:
        log.warning("The rows of the workers that were ended cannot be read; their leases run out: %s", error)
        return set()


def _hand_back(name: str, reason: str) -> None:
    try:
        if number := hand_back_for(name, reason):
            log.info("%s runs of worker %s are handed back: %s", number, name, reason)
    except (DatabaseError, InterfaceError) as error:
        log.warning("The runs of worker %s are not handed back; their leases run out: %s", name, error)
