"""How a node's wait is opened, and looked at again, by the worker that drives the run."""

from __future__ import annotations

from django.db import transaction

from runs.core.ledger import Entry
from runs.core.moments import Until, moment_of
from runs.engine.entry_rows import row_of
from runs.engine.lease import Lease
from runs.models import statuses
from runs.models.entry import OPEN, LedgerEntry
from runs.models.run import Run


def look_at_wait(lease: Lease, entry: Entry, until: Until | None) -> LedgerEntry | None:
    """The wait's row, opened if need be, and answered where its signal is there or its moment has come.

    All in one transaction under the Run lock, by the clock read after it: no signal can come in between, and none is
    consumed twice. None when the fence has moved. Done again after a fault, it finds what it did before.
    """
    with transaction.atomic():
        run, now = Run.objects.lock(lease.run_id)
        if run.fence != lease.fence or run.status != statuses.RUNNING:
            return None
        row = LedgerEntry.objects.filter(run=run, step=entry.step, key=entry.key).first()
        if row is None:
            entry.due_at = moment_of(until, now)
            columns = row_of(entry, run.pk, {}, lease.worker, now)
            row = LedgerEntry.objects.create(run=run, **columns)
        if row.status == OPEN:
            row.look(now)
        if row.status != OPEN and row.taken_at is None:
            row.taken_at = now
            row.save(update_fields=["taken_at"])
    return row
