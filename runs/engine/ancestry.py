"""What a fork finds of the run it is from: an author's key that was done before they parted is done for both."""

from __future__ import annotations

import uuid

from runs.core.errors import Permanent
from runs.models.archived import everywhere
from runs.models.checkpoint import Checkpoint
from runs.models.entry import DONE, EFFECT, LedgerEntry
from runs.models.run import Run


def done_before_parting(run_id: uuid.UUID, idempotency_key: str) -> LedgerEntry | None:
    """The effect that stands under this key of the fork, with the id of a run put in its place, in the runs it is from.

    Only what was done in the steps up to the one that the fork entered, and by the moment of the fork. Raises Permanent
    for one whose result was erased since: it cannot be told, and must not be done again.
    """
    run, key = Run.objects.get(pk=run_id), idempotency_key
    while run.origin is not None:
        entered = Checkpoint.objects.values_list("step", flat=True).get(run=run, seq=0) + 1
        key = key.replace(str(run.pk), str(run.origin))
        done = everywhere(LedgerEntry).filter(run=run.origin, idempotency_key=key, kind=EFFECT, status=DONE)
        if (found := done.filter(step__lte=entered, answered_at__lte=run.created_at).first()) is not None:
            if found.result == "":
                raise Permanent(
                    f"{found.key} was done by run {run.origin}, of which this is a fork, and its result was erased"
                )
            return found
        run = Run.objects.get(pk=run.origin)
    return None
