"""A run's own rows, wherever they stand: the one door of pages, commands, checks and erasure.

What moves a live run reads the hot tables alone, by `Checkpoint.objects` and the others.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from runs.models.checkpoint import Checkpoint
    from runs.models.entry import LedgerEntry
    from runs.models.remark import Remark
    from runs.models.signal import Signal


class Reading:
    """The part of Run that gives its rows. They are not to be joined (runs/models/archived.py)."""

    root: uuid.UUID
    archived_at: datetime | None

    @property
    def archived(self) -> bool:
        """Whether its family is in the archive, or on its way there: then no verb brings it back."""
        from runs.models.archival import Archival

        return self.archived_at is not None or (
            self.ended and Archival.objects.filter(run=self.root).exists()
        )

    @property
    def checkpoints(self) -> QuerySet[Checkpoint]:
        from runs.models.archived import everywhere
        from runs.models.checkpoint import Checkpoint

        return everywhere(Checkpoint).filter(run=self)

    @property
    def entries(self) -> QuerySet[LedgerEntry]:
        from runs.models.archived import everywhere
        from runs.models.entry import LedgerEntry

        return everywhere(LedgerEntry).filter(run=self)

    @property
    def remarks(self) -> QuerySet[Remark]:
        from runs.models.archived import everywhere
        from runs.models.remark import Remark

        return everywhere(Remark).filter(run=self)

    @property
    def signals(self) -> QuerySet[Signal]:
        from runs.models.archived import everywhere
        from runs.models.signal import Signal

        return everywhere(Signal).filter(run=self)
