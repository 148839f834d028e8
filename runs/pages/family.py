"""What a run's page shows of its family: where it comes from, and the runs below it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Q

from runs.models import Run
from runs.models.statuses import STATUSES
from runs.pages.filters import counted
from runs.pages.rows import RunRow, rows

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

CHILDREN_SHOWN = 25
NEAR_SHOWN = 20


@dataclass(frozen=True)
class Family:
    """Only runs that the reader may see. `counts` are the children by status; `shown` the first of them, as rows.

    `origin` is the run that this one is a fork of; `forks` are the first of its own.
    """

    parent: Run | None
    root: Run | None
    origin: Run | None
    forks: list[Run]
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
    named = {run.parent_id, run.root, run.origin} - {None, run.pk}
    # who is older comes first, so that many forks leave nobody out
    wanted = Q(pk__in=named) | Q(origin=run.pk) if getattr(run, "has_forks", True) else Q(pk__in=named)
    near = list(seen.filter(wanted).order_by("pk")[:NEAR_SHOWN])
    above = {one.pk: one for one in near if one.pk in named}
    forks = [one for one in near if one.origin == run.pk]
    children = seen.filter(parent=run)
    counts = counted(children)
    listed = children.select_related("created_by", "on_behalf_of").order_by("created_at", "item")
    shown = list(listed[:CHILDREN_SHOWN]) if counts[""] else []
    told = [(status, counts[status]) for status in STATUSES if counts[status]]
    older = (above.get(run.parent_id), above.get(run.root), above.get(run.origin))
    return Family(*older, forks, told, rows(shown, now))
