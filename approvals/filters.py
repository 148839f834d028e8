"""What narrows the inbox: one scope and one filter, carried by the address of the page."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any  # rows of either table
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy as _

from approvals.models.inbox import SCOPES, midnight_after
from approvals.models.reviewer import Reviewer
from approvals.models.search import SHORTEST_ANYWHERE
from approvals.words import RISKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.utils.functional import Promise

    from approvals.models.inbox import ApprovalQuerySet

LONGEST = 200
AGES: dict[str, tuple[timedelta, str | Promise]] = {
    "1h": (timedelta(hours=1), _("1 hour")),
    "4h": (timedelta(hours=4), _("4 hours")),
    "1d": (timedelta(days=1), _("1 day")),
    "3d": (timedelta(days=3), _("3 days")),
    "7d": (timedelta(days=7), _("7 days")),
}
DEADLINES: dict[str, str | Promise] = {
    "overdue": _("overdue"),
    "1h": _("within an hour"),
    "today": _("today"),
    "7d": _("within 7 days"),
    "none": _("no deadline"),
}
RISK_WORDS: dict[str, str | Promise] = {"high": _("high"), "medium": _("medium"), "low": _("low")}


@dataclass(frozen=True, slots=True)
class Chip:
    """One thing that narrows the list, and the address without it."""

    word: str | Promise
    value: str | Promise
    without: str


@dataclass(frozen=True, slots=True)
class Filter:
    """`after` is the place in the list at which a later page begins (approvals/listing.py); it narrows nothing."""

    scope: str = "mine"
    graph: str = ""
    risk: str = ""
    age: str = ""
    due: str = ""
    requester: str = ""
    reviewer: str = ""
    q: str = ""
    after: str = ""

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Filter:
        """What a query string asks for; what it does not know is left out."""
        known = {"scope": SCOPES, "risk": RISKS, "age": AGES, "due": DEADLINES}
        given = {each.name: said.get(each.name, "").replace("\0", "").strip() for each in fields(cls)}
        for name, words in known.items():
            given[name] = given[name] if given[name] in words else ""
        return cls(**{name: value[:LONGEST] for name, value in given.items() if value})

    @property
    def chips(self) -> list[Chip]:
        said: dict[str, tuple[str | Promise, str | Promise]] = {
            "graph": (_("Graph"), self.graph),
            "risk": (_("Risk"), RISK_WORDS.get(self.risk, "")),
            "age": (_("Waits for over"), AGES[self.age][1] if self.age else ""),
            "due": (_("Due"), DEADLINES.get(self.due, "")),
            "requester": (_("For"), self.requester),
            "reviewer": (_("Asks"), self.reviewer),
        }
        return [
            Chip(word, value, replace(self, after="", **{name: ""}).query or "?")
            for name, (word, value) in said.items()
            if value
        ]

    @property
    def narrows(self) -> int:
        """How many things narrow the list beside its scope and the search."""
        return len(self.chips)

    @property
    def is_plain(self) -> bool:
        return not self.narrows and not self.q

    @property
    def query(self) -> str:
        """The filter as a query string, with its question mark; "" for the plain inbox."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        said["scope"] = "" if self.scope == "mine" else self.scope
        text = urlencode({name: value for name, value in said.items() if value})
        return f"?{text}" if text else ""

    @property
    def kept_query(self) -> str:
        """What is saved under a name: the first page."""
        return replace(self, after="").query

    @property
    def bare_query(self) -> str:
        """The scope alone."""
        return replace(Filter(), scope=self.scope).query

    def applied(self, rows: ApprovalQuerySet, now: datetime, *, walked: bool = False) -> ApprovalQuerySet:
        """`walked`: the rows are read in their order, so an index of texts would only be in the way."""
        if self.graph:
            rows = rows.filter(graph=self.graph)
        if self.risk:
            rows = rows.filter(risk=self.risk)
        if self.age:
            rows = rows.filter(opened_at__lte=now - AGES[self.age][0])
        if self.due:
            rows = self._due(rows, now)
        if self.requester:
            rows = rows.asked_by(self.requester)
        if self.reviewer:
            rows = rows.for_reviewer(self.reviewer)
        if not self.q:
            return rows
        return rows.meeting(self.q) if walked else rows.matching(self.q)

    def by_index(self, rows: ApprovalQuerySet, now: datetime) -> ApprovalQuerySet:
        """`rows`, all that are open or all that are decided, as far as an index of their order narrows them."""
        if self.graph:
            rows = rows.filter(graph=self.graph)
        elif self.risk and self.scope != "decided":
            rows = rows.filter(risk=self.risk)
        return self._due(rows, now) if self.due and self.scope != "decided" else rows

    def ways(self, rows: ApprovalQuerySet) -> Iterator[tuple[QuerySet[Any, UUID], bool]]:
        """Ids among which are all of `rows` that fit, by each thing for which there is an index beside their order; and
        whether that is of words."""
        if self.reviewer:
            named = Reviewer.objects.filter(name__iexact=self.reviewer, excluded=False).order_by()
            named = named if self.scope == "decided" else named.filter(live=True)
            yield named.values_list("approval", flat=True), False
        if self.requester:
            yield rows.asked_by(self.requester).values_list("pk", flat=True), False
        if len(self.q) >= SHORTEST_ANYWHERE:  # what is shorter is seldom rare, and dear to look up
            yield rows.matching(self.q).values_list("pk", flat=True), True

    def _due(self, rows: ApprovalQuerySet, now: datetime) -> ApprovalQuerySet:
        if self.due == "none":
            return rows.filter(due_at=None)
        if self.due == "overdue":
            return rows.filter(due_at__lte=now)
        until = {
            "1h": now + timedelta(hours=1),
            "today": midnight_after(now),
            "7d": now + timedelta(days=7),
        }
        return rows.filter(due_at__gt=now, due_at__lt=until[self.due])
