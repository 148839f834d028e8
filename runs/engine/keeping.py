"""Retention: what is kept is neither erased nor archived. One flag a family, on the run at its top."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from runs.core.words import storable_text
from runs.errors import Conflict, told
from runs.models.archived import everywhere
from runs.models.remark import Remark
from runs.models.run import Run
from runs.models.tombstone import Tombstone

KEPT, RELEASED = "kept", "released"


def keep(run: Run, kept: bool, reason: str, by: str) -> Remark:
    """Set or lift the flag of the run's family, and leave a row of its trail. Raises Conflict when it is so already.

    The run may be live and driven: nothing that its worker compares is touched.
    """
    with transaction.atomic():
        top, now = Run.objects.lock(run.root)
        if kept and Tombstone.objects.filter(run=top).exists():
            raise Conflict(
                told(_("Run %(run)s is erased, or being erased; nothing is left to keep."), run=run.short_id)
            )
        if Run.objects.filter(pk=top.pk, kept=not kept).update(kept=kept) != 1:
            said = _("Run %(run)s is kept already.") if kept else _("Run %(run)s is not kept.")
            raise Conflict(told(said, run=run.short_id))
        remark = Remark.objects.create(
            run=top,
            kind=KEPT if kept else RELEASED,
            worker=storable_text(by)[:120],
            fence=top.fence,
            body=storable_text(reason),
            at=now,
        )
    run.kept = kept if run.pk == top.pk else run.kept
    return remark


def hold(run: Run) -> Remark | None:
    """Who keeps the run's family, since when and why; None when it is not kept. No query for a top that is not."""
    is_kept = run.kept if run.root == run.pk else Run.objects.filter(pk=run.root, kept=True).exists()
    if not is_kept:
        return None
    return everywhere(Remark).filter(run=run.root, kind=KEPT).order_by("-pk").first()
