"""`Run.cancel`: a live or failed run ends now, or begins to undo what it did."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from runs.engine import compensating, family
from runs.engine.repairable import refuse_gone
from runs.errors import Conflict, status, told
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run
from runs.models.statuses import CANCELLED, FAILED, LIVE

MOST_AT_ONCE = 100  # children that a cancel cancels itself; workers go on with the rest


def cancel(run_id: uuid.UUID, by: str, reason: str, compensate: bool) -> Checkpoint:
    """The verb; its docstring is at Run.cancel."""
    with transaction.atomic():
        had_failed = Run.objects.filter(pk=run_id, status=FAILED).exists()
        run, now = (Run.objects.lock_with_family if had_failed else Run.objects.lock)(run_id)
        if run.status not in (*LIVE, FAILED):
            raise Conflict(
                told(
                    _("Run %(run)s is %(word)s; only a live or failed run can be cancelled."),
                    run=run.short_id,
                    word=status(run.status),
                )
            )
        if run.status == FAILED and not had_failed:
            raise Conflict(told(_("Run %(run)s has moved on; look at it again."), run=run.short_id))
        if had_failed:
            refuse_gone(run)
        if compensate and run.ending:
            raise Conflict(told(_("Run %(run)s is undoing what it did already."), run=run.short_id))
        if compensate and compensating.is_needed(run.pk):
            _refuse_under_a_fork(run)
            return compensating.begin(
                run, now, CANCELLED, actor=by, reason=reason, finished_at=None, closed_at=None
            )
        checkpoint = family.cancel_now(run, now, actor=by, reason=reason)
    if run.cascade_at is not None:
        family.cancel_children(run.pk, most=MOST_AT_ONCE)
    return checkpoint


def _refuse_under_a_fork(run: Run) -> None:
    """A fork goes on with what this run did, or a child that is undone with it, and does not know of the undoing."""
    for origin in (run, *_forked_below(run)):
        origins = [origin.pk]
        while origins:
            rows = Run.objects.filter(origin__in=origins).order_by("created_at")
            if found := rows.live().first():
                said = _(
                    "Run %(fork)s is a fork of run %(origin)s and goes on with what this would undo. Cancel it first, "
                    "or cancel run %(run)s without undoing."
                )
                names = {"fork": found.short_id, "origin": origin.short_id, "run": run.short_id}
                raise Conflict(told(said, **names))
            origins = list(rows.values_list("pk", flat=True))


def _forked_below(run: Run) -> list[Run]:
    """The runs below this one that have forks, and live and end with it: few, however large the family."""
    forks = Run.objects.filter(origin=OuterRef("pk"))
    forked = Run.objects.live().filter(Exists(forks), root=run.root, depth__gt=run.depth)
    return [child for child in forked.select_related("parent") if _ends_with(child, run)]


def _ends_with(child: Run, run: Run) -> bool:
    while child.pk != run.pk:
        if child.parent is None or child.detached or child.ended or child.ending:
            return False
        child = child.parent
    return True
