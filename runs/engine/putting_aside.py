"""`Run.close`: a failed run waits for no operator any more."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from runs.engine.repairable import refuse_gone
from runs.engine.transition import CLOSE, move
from runs.errors import Conflict, status, told
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run
from runs.models.statuses import FAILED


def close(run_id: uuid.UUID, by: str, reason: str) -> Checkpoint:
    """The verb; its docstring is at Run.close."""
    with transaction.atomic():
        run, now = Run.objects.lock_with_family(run_id)
        if run.status != FAILED:
            raise Conflict(
                told(
                    _("Run %(run)s is %(status)s; only a failed run can be closed."),
                    run=run.short_id,
                    status=status(run.status),
                )
            )
        refuse_gone(run)
        if run.closed_at is not None:
            raise Conflict(told(_("Run %(run)s is closed already."), run=run.short_id))
        return move(run, CLOSE, now, actor=by, reason=reason, closed_at=now)
