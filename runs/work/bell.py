"""The bell: looks ten times a second whether a run is due, and rings for a shift. A bell that is lost is rung again."""

from __future__ import annotations

import logging
import secrets
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, connection
from django.db.models import QuerySet
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from runs import chores, registry
from runs.engine import clock, schedules
from runs.engine.portion import Portion
from runs.engine.standing import Standing
from runs.engine.versions import OldRuns, of_pairs, servable
from runs.models.limits import LaneUse
from runs.models.live_text import LiveText
from runs.models.run import Run
from runs.models.tool_rate import ToolRate
from runs.models.worker import Worker
from runs.work import presence
from runs.work.bell_line import BellLine
from runs.work.shift_slots import most_shifts

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
ANSWERED_SECONDS = 0.3  # the shift that has just come may take all that is due
AGAIN_SECONDS = 2.0  # an unanswered bell may be lost in the queue of a worker that was killed
LONGEST_AGAIN_SECONDS = 60.0
TEND_SECONDS = 1.0
UNSERVED_SECONDS = 5.0  # another machine's idle workers, which have no row, may serve it
HELD = timedelta(minutes=1)
AT_A_TIME = 500  # held runs at most, moved on in one transaction
FAULT_PAUSE_SECONDS = 1.0
LEFT = timedelta(minutes=10)  # a bell that nobody took for so long is in the queue of a cluster that is gone
ANEW_SIGNAL = signal.SIGUSR1  # from the supervisor: what was rung went to workers that are gone


class Bell:
    """One for each cluster, whose `queue` it rings in (None: q2's default); its bells are named by it.

    `unanswered_seconds` grows only while fewer shifts live here than may.
    """

    def __init__(self, queue: str | None = None) -> None:
        self.queue = queue or Conf.CLUSTER_NAME
        self.known: set[tuple[str, int]] | None = None
        self.old: OldRuns | None = None  # what this code only migrates
        self.rung = ""  # the bell that waits for its answer
        self.rung_at = self.unanswered_since = clock.elapsed()
        self.again_seconds = AGAIN_SECONDS
        self.answered_at = self.tended_at = 0.0
        self.chores_wait = self.synced = False
        self.line = BellLine()
        self.standing = Standing()

    def watch(self, report: Callable[[float], None] | None = None) -> None:
        """Look until the process ends; `report` is told after each look for how long no bell was answered."""
        while True:
            try:
                self.look()
                self.line.wait(LOOK_SECONDS)
            except (DatabaseError, InterfaceError) as error:
                self.forget()  # nobody could have answered meanwhile
                log.warning("The bell cannot look into the database, and tries again: %s", error)
                connection.close()
                self.line.close()
                time.sleep(FAULT_PAUSE_SECONDS)
            if report is not None:
                report(self.unanswered_seconds)

    @property
    def unanswered_seconds(self) -> float:
        return clock.elapsed() - self.unanswered_since if self.rung else 0.0

    def look(self) -> None:
        """Ring if a run that workers may serve is due, or a chore; no bell is unanswered; another shift may live."""
        now = clock.now()
        if clock.elapsed() - self.tended_at >= TEND_SECONDS:
            self.tended_at = clock.elapsed()
            self._tend(now)
        if self.rung and Worker.objects.filter(bell=self.rung).exists():
            self.forget()
            self.answered_at = clock.elapsed()
        if not self.chores_wait and not Run.objects.due(now).exists():
            self.forget()
            return
        living = presence.living(now)
        if not self.chores_wait and not self._due(now, living):
            self.forget()
        elif sum(map(self._is_ours, presence.here(living))) >= most_shifts():
            self.forget()
        elif not self.rung:
            if clock.elapsed() - self.answered_at >= ANSWERED_SECONDS:
                self._ring()
        elif clock.elapsed() - self.rung_at >= self.again_seconds:
            self.again_seconds = min(self.again_seconds * 2, LONGEST_AGAIN_SECONDS)
            self._ring()

    def _due(self, now: datetime, living: list[Worker]) -> bool:
        """A run that somebody serves; or one that a dead worker left, which anybody may recover."""
        due = self.standing.look().takable(Run.objects.due(now), now)
        served = of_pairs(self._served(living))
        if due.filter(served).exists() or due.filter(leased_by__isnull=False).exists():
            return True
        old = self.old.due(now)
        return old is not None and due.filter(old).exists()

    def _served(self, living: list[Worker]) -> set[tuple[str, int]]:
        """What living workers serve, and what those of this code will: an idle worker has no row."""
        if self.known is None:
            graphs = servable(registry.served())[0]
            self.known, self.old = {(graph.name, graph.version) for graph in graphs}, OldRuns(graphs)
        return self.known | presence.served_by(living)

    def _ring(self) -> None:
        now = clock.elapsed()
        if not self.rung:
            self.unanswered_since = now
        self.rung, self.rung_at = f"{self.queue}.{secrets.token_hex(8)}", now
        async_task("runs.work.tasks.shift", self.rung, cluster=self.queue)

    def _is_ours(self, worker: Worker) -> bool:
        """Whether that shift takes a place of this cluster; another one beside it has places of its own."""
        return worker.bell.startswith(f"{self.queue}.")

    def forget(self) -> None:
        """No bell waits for its answer any more; if a run is due, the next look rings."""
        self.rung, self.again_seconds = "", AGAIN_SECONDS

    def _tend(self, now: datetime) -> None:
        """Held: due runs that nobody serves are looked at again in a minute; their status stays."""
        unserved = Run.objects.due(now - timedelta(seconds=UNSERVED_SECONDS)).filter(leased_by=None)
        looked_after = self._served(presence.living(now)) | self.old.targets.keys()
        if held := _move_on(unserved.exclude(of_pairs(looked_after)), now + HELD):
            log.info("%s due runs are held: no living worker serves their graph's version", held)
        presence.prune(now)
        LaneUse.forget_old(now)
        ToolRate.objects.forget_idle(now)
        LiveText.objects.forget_left()
        if not self.synced:
            schedules.sync()
            OrmQ.objects.filter(lock__lt=now - LEFT).delete()
            self.synced = True
        self.chores_wait = chores.are_due(now)


def _move_on(held: QuerySet[Run], until: datetime) -> int:
    """There may be very many, and somebody may want to cancel one; how many they were."""
    moved, portion = 0, Portion(AT_A_TIME)
    while some := list(held.values_list("pk", flat=True)[: portion.size]):
        portion.begin()
        moved += held.filter(pk__in=some).update(wake_at=until)
        portion.end()
    return moved
