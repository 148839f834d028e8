"""What stands against bringing an ended run back, each in one clear line."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from runs.engine import compensating
from runs.engine.below import writes_below
from runs.errors import Conflict, status, told
from runs.models import statuses
from runs.models.entry import DONE, IN_DOUBT, LedgerEntry
from runs.models.run import Run
from runs.models.tombstone import Tombstone
from runs.models.untold_end import UntoldEnd


def refuse_ended_otherwise(run: Run) -> None:
    """Raises Conflict unless the run has failed or was cancelled, and nothing has taken it away since."""
    if run.status not in (statuses.FAILED, statuses.CANCELLED):
        raise Conflict(
            told(
                _("Run %(run)s is %(status)s; only a failed or cancelled run can be repaired."),
                run=run.short_id,
                status=status(run.status),
            )
        )
    refuse_gone(run)
    if compensating.has_begun(run):
        raise Conflict(
            told(
                _(
                    "What run %(run)s did was undone, or began to be; it cannot go on. Fork it from before that."
                ),
                run=run.short_id,
            )
        )


def refuse_gone(run: Run) -> None:
    """Raises Conflict for a run of a family that was erased or archived, or is about to be."""
    if Tombstone.objects.filter(run=run.root).exists():
        raise Conflict(
            told(_("Run %(run)s is erased, or being erased; nothing brings it back."), run=run.short_id)
        )
    if run.archived:
        raise Conflict(told(_("Run %(run)s is archived; a fork of it can go on."), run=run.short_id))


def refuse_unfinished(run: Run, entries: list[LedgerEntry]) -> None:
    """What its end has begun must be over, under the locks of the run and its parent."""
    doubted = [entry.key for entry in entries if entry.status == IN_DOUBT]
    below = writes_below([entry for entry in entries if entry.status != DONE], (IN_DOUBT,))
    doubted += [f"{one.key} ({one.run.short_id})" for one in below]  # a child that goes on would do it again
    if doubted:
        raise Conflict(
            told(
                _("Run %(run)s: whether %(keys)s happened is in doubt; settle it first."),
                run=run.short_id,
                keys=", ".join(doubted),
            )
        )
    if run.cascade_at is not None:
        raise Conflict(
            told(
                _("The children of run %(run)s are still being ended; try again in a moment."),
                run=run.short_id,
            )
        )
    if run.parent_id is None:
        return
    if run.parent.cascade_at is not None or UntoldEnd.objects.filter(child=run).exists():
        raise Conflict(
            told(
                _("The parent of run %(run)s does not know its end yet; try again in a moment."),
                run=run.short_id,
            )
        )
