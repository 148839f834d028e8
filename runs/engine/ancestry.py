"""What a fork finds of the run it is from: an author's key that was done before they parted is done for both."""

from __future__ import annotations

import uuid

from django.db.models import Q

from runs.core.errors import Permanent
from runs.core.keys import again
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
        keyed = Q(idempotency_key=key) | Q(
            idempotency_key__startswith=f"{key}:r"
        )  # asked anew after a repair
        done = everywhere(LedgerEntry).filter(keyed, run=run.origin, kind=EFFECT, status=DONE)
        before = done.filter(step__lte=entered, answered_at__lte=run.created_at)
        if found := next((one for one in before if _is_of(key, one.idempotency_key)), None):
            if found.result == "":
                raise Permanent(
                    f"{found.key} was done by run {run.origin}, of which this is a fork, and its result was erased"
                )
            return found
        run = Run.objects.get(pk=run.origin)
    return None


def _is_of(key: str, other: str | None) -> bool:
    return other is not None and (other == key or again(key, other) > 0)
