"""What a fork finds of the run it is from: an author's key that was done before they parted is done for both."""

from __future__ import annotations

import re
import uuid

from django.db.models import Q

from runs.core.errors import Permanent
from runs.core.keys import again, follows
from runs.core.ledger import FAILED
from runs.models.archived import everywhere
from runs.models.entry import CHILD, DONE, EFFECT, INTERRUPT, SIGNAL, LedgerEntry
from runs.models.run import Run


def done_before_parting(run_id: uuid.UUID, idempotency_key: str) -> LedgerEntry | None:
    """The effect, or the start of a child that has ended, which stands under this key of the fork, with the id of a run
    put in its place, in the runs it is from.

    Only what was done in the steps up to the one that the fork entered, and by the moment of the fork; or what had
    failed in those, and stands. Raises Permanent for one whose result was erased since: it cannot be told, and must not
    be done again.
    """
    run, key, line = Run.objects.get(pk=run_id), idempotency_key, []
    while run.origin is not None:
        line.append(run.pk)
        entered = run.checkpoints.values_list("step", flat=True).get(seq=0) + 1
        key = key.replace(str(run.pk), str(run.origin))
        keyed = Q(idempotency_key=key)
        keyed |= Q(idempotency_key__startswith=f"{key}:r") | Q(
            idempotency_key__startswith=f"{key}~"
        )  # asked anew
        known = everywhere(LedgerEntry).filter(keyed, run=run.origin, kind__in=(EFFECT, CHILD))
        before = known.filter(step__lte=entered, answered_at__lte=run.created_at)
        these = [one for one in before if _is_of(key, one)]
        found = next((one for one in these if one.status == DONE and not one.aside), None)
        if found is None:
            found = next(
                (one for one in these if one.step < entered and stands(one) or _copy_stands(line, one)), None
            )
            if found is not None:
                found.aside = False
        if found is not None:
            if found.result == "":
                raise Permanent(
                    f"{found.key} was done by run {run.origin}, of which this is a fork, and its result was erased"
                )
            return found
        run = Run.objects.get(pk=run.origin)
    return None


def stands(row: LedgerEntry) -> bool:
    """A failure that its node has caught: the step was committed, and something that was done after it stands.

    It holds in the whole run then, also where a repair of that step had put it aside: asked anew, both would be done.
    What was asked anew in its own step has another answer.
    """
    left_by = row.run.checkpoints.filter(step=row.step).order_by("seq").values_list("kind", flat=True).first()
    if row.status != FAILED or left_by != "step":
        return False
    if not row.aside:
        return True
    if any(
        follows(row.key, key) for key in row.run.entries.filter(step=row.step).values_list("key", flat=True)
    ):
        return False
    later = row.run.entries.filter(step=row.step, opened_at__gte=row.answered_at, aside=False)
    went_on = Q(write=True) | Q(kind__in=(INTERRUPT, SIGNAL, CHILD))
    return later.filter(went_on).exclude(status="cancelled").exists()


def _copy_stands(forks: list[uuid.UUID], row: LedgerEntry) -> bool:
    """That of the step which one of these has entered, and committed since."""
    copies = everywhere(LedgerEntry).filter(run__in=forks, copied_from=row.copied_from or row.pk)
    return any(stands(one) for one in copies)


def is_of_an_origin(run_id: uuid.UUID, child: Run) -> bool:
    """Whether this child was started by one of the runs that the run is a fork of."""
    origin = Run.objects.values_list("origin", flat=True).get(pk=run_id)
    while origin is not None and origin != child.parent_id:
        origin = Run.objects.values_list("origin", flat=True).get(pk=origin)
    return origin is not None


def _is_of(key: str, entry: LedgerEntry) -> bool:
    """Under that key, or one that a repair has made of it."""
    other = entry.idempotency_key or ""
    if other == key:
        return True
    return (
        again(key, other) > 0
        if entry.kind == EFFECT
        else re.fullmatch(r"~\d+", other.removeprefix(key)) is not None
    )
