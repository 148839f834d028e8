"""Which worker processes live, by their heartbeats, and which graphs they serve."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import datetime

import psutil

from runs.conf import conf
from runs.core import codec
from runs.engine.host import boot_id
from runs.models.run import Run
from runs.models.worker import Worker
from runs.work.process_tree import is_alive

KEPT_LEASES = 10


def living(now: datetime) -> list[Worker]:
    """Seen lately; and, where that can be looked up, of a process that is still there."""
    return [worker for worker in Worker.objects.seen_lately(now) if not _is_gone(worker)]


def here(workers: Iterable[Worker]) -> list[Worker]:
    """Those of this machine, since its last start."""
    host, boot = platform.node()[:100], boot_id()
    return [worker for worker in workers if worker.host == host and worker.boot_id == boot]


def served_by(workers: Iterable[Worker]) -> set[tuple[str, int]]:
    return {(name, version) for worker in workers for name, version in codec.loads(worker.serves)}


def prune(now: datetime) -> int:
    """Rows of workers that were killed, once nothing waits for the lease of what they held. How many."""
    unseen = Worker.objects.filter(seen_at__lt=now - KEPT_LEASES * conf.lease)
    holding = Run.objects.filter(leased_by__isnull=False).values("leased_by")
    return unseen.exclude(name__in=holding).delete()[0]


def _is_gone(worker: Worker) -> bool:
    """Killed on this machine: its heartbeats would tell only later."""
    if not here([worker]):
        return False
    try:
        return not is_alive(psutil.Process(worker.pid))
    except psutil.NoSuchProcess:
        return True
