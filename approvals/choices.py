"""What the form of the filter offers for a list: the words, names that are near, and what this person has kept."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from approvals.filters import AGES, DEADLINES, RISK_WORDS
from approvals.models import Approval, SavedFilter, reach

if TYPE_CHECKING:
    from approvals.listing import Listing
    from approvals.models.inbox import ApprovalQuerySet
    from runs.models import Run

SAMPLE = 100  # of so many rows it is told which graphs and people there are


class Choices:
    ages = {name: word for name, (_length, word) in AGES.items()}
    deadlines, risks = DEADLINES, RISK_WORDS

    def __init__(self, listing: Listing) -> None:
        self._listing, self._filter = listing, listing.filter

    @property
    def graphs(self) -> list[str]:
        """Names to filter by: of this scope, and the one that is chosen."""
        return sorted({row[0] for row in self._sample} | {self._filter.graph} - {""})

    @property
    def requesters(self) -> list[str]:
        return sorted({name for row in self._sample for name in row[1:] if name})

    @cached_property
    def saved(self) -> list[SavedFilter]:
        return list(SavedFilter.objects.filter(person=self._listing.user))

    @property
    def saved_as(self) -> SavedFilter | None:
        """The saved filter that the list shows."""
        return next((each for each in self.saved if each.query == self._filter.kept_query), None)

    @cached_property
    def _sample(self) -> list[tuple[str, str | None, str | None]]:
        """(graph, for whom, by whom), without the filter."""
        first = self._listing.first_keys if self._filter.is_plain else None
        if first is None:
            rows = self._near[:SAMPLE]
        elif len(first) <= len(self._listing.rows):
            return [(row.graph, *_requesters(row.run)) for row in self._listing.rows]
        else:
            rows = Approval.objects.filter(pk__in=reach.among(first[:SAMPLE]))
        return list(rows.values_list("graph", "run__on_behalf_of__username", "run__created_by__username"))

    @property
    def _near(self) -> ApprovalQuerySet:
        name = "all" if self._filter.scope == "attention" else self._filter.scope
        return reach.near(name, self._listing.scopes.rows(name), self._listing.user)


def _requesters(run: Run) -> list[str | None]:
    return [one.username if one is not None else None for one in (run.on_behalf_of, run.created_by)]
