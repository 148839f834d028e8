"""What a run's page shows of its family: where it comes from, and the runs below it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from runs.models import Run
from runs.models.statuses import STATUSES
from runs.pages.filters import counted
from runs.pages.rows import RunRow, rows

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

CHILDREN_SHOWN = 25


@dataclass(frozen=True)
class Family:
    """Only runs that the reader may see. `counts` are the children by status; `shown` the first of them, as rows."""

    parent: Run | None
    root: Run | None
    counts: list[tuple[str, int]]
    shown: list[RunRow]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def more(self) -> int:
        return self.total - len(self.shown)


def family(run: Run, user: AbstractBaseUser | AnonymousUser, now: datetime) -> Family:
    seen = Run.objects.visible_to(user)
    above = {one.pk: one for one in seen.filter(pk__in={run.parent_id, run.root} - {None, run.pk})}
    children = seen.filter(parent=run)
    counts = counted(children)
    listed = children.select_related("created_by", "on_behalf_of").order_by("created_at", "item")
    shown = list(listed[:CHILDREN_SHOWN]) if counts[""] else []
    told = [(status, counts[status]) for status in STATUSES if counts[status]]
    return Family(above.get(run.parent_id), above.get(run.root), told, rows(shown, now))
