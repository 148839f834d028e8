"""What the form of the filter offers for a list: the words, names that are near, and what this person has kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from django.core.cache import caches

from approvals.filters import AGES, DEADLINES, RISK_WORDS
from approvals.models import SavedFilter, reach

if TYPE_CHECKING:
    from collections.abc import Iterable

    from approvals.listing import Listing

SAMPLE = 100  # of so many rows it is told which graphs and people there are
REMEMBERED = 60  # seconds


@dataclass(frozen=True, slots=True)
class Names:
    """Of graphs, and of those for whom and by whom runs were started."""

    graphs: frozenset[str]
    requesters: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str | None, str | None]]) -> Names:
        """`rows`: graph, for whom, by whom."""
        found = list(rows)
        people = {name for row in found for name in row[1:] if name}
        return cls(frozenset(row[0] for row in found), frozenset(people))


class Choices:
    ages = {name: word for name, (_length, word) in AGES.items()}
    deadlines, risks = DEADLINES, RISK_WORDS

    def __init__(self, listing: Listing) -> None:
        self._listing, self._filter = listing, listing.filter

    @property
    def graphs(self) -> list[str]:
        """Names to filter by: of this scope, and the one that is chosen."""
        return sorted((self._names.graphs | {self._filter.graph}) - {""})

    @property
    def requesters(self) -> list[str]:
        return sorted(self._names.requesters)

    @cached_property
    def saved(self) -> list[SavedFilter]:
        return list(SavedFilter.objects.filter(person=self._listing.user))

    @cached_property
    def saved_as(self) -> SavedFilter | None:
        """The saved filter that the list shows."""
        return next((each for each in self.saved if each.query == self._filter.kept_query), None)

    @cached_property
    def _names(self) -> Names:
        """Those of the page, where nothing narrows it; else of some rows of its scope, a minute old at most: who looks
        for something looks at several pages, and to gather them took as long as to find what was looked for."""
        if self._filter.is_plain:
            return Names.of((row.graph, row.served_as, row.started_as) for row in self._listing.rows)
        scope, user = self._filter.scope, self._listing.user
        name = "all" if scope == "attention" else scope
        key = f"approvals:names:{name}:{user.pk}"
        known = caches["process"].get(key)
        if known is None:
            rows = reach.near(name, self._listing.scopes.rows(name), user)[:SAMPLE]
            known = Names.of(
                rows.values_list("graph", "run__on_behalf_of__username", "run__created_by__username")
            )
            caches["process"].set(key, known, REMEMBERED)
        return known
