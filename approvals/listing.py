"""The inbox's list: one scope, one filter, carried by the address of the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Q
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval
from approvals.models.inbox import LATER, NO_DEADLINE, OVERDUE, SCOPES, TODAY
from approvals.words import RISKS
from runs.engine import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User
    from django.utils.functional import Promise

    from approvals.models.inbox import ApprovalQuerySet

SHOWN = 100
SCOPE_WORDS: dict[str, str | Promise] = {
    "mine": _("Mine"),
    "teams": _("My teams"),
    "all": _("All"),
    "attention": _("Attention"),
    "decided": _("Decided"),
}
GROUP_WORDS: dict[str, str | Promise] = {
    OVERDUE: _("Overdue"),
    TODAY: _("Today"),
    LATER: _("Later"),
    NO_DEADLINE: _("No deadline"),
    "decided": _("Decided"),
}


@dataclass(frozen=True, slots=True)
class Filter:
    scope: str = "mine"
    graph: str = ""
    risk: str = ""
    q: str = ""

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Filter:
        """What a query string asks for; what it does not know is left out."""
        scope, risk = said.get("scope", "mine"), said.get("risk", "")
        return cls(
            scope=scope if scope in SCOPES else "mine",
            graph=said.get("graph", "")[:100].replace("\0", ""),
            risk=risk if risk in RISKS else "",
            q=said.get("q", "")[:200].strip().replace("\0", ""),
        )

    @property
    def narrows(self) -> int:
        """How many things narrow the list beside its scope."""
        return sum(map(bool, (self.graph, self.risk)))

    @property
    def query(self) -> str:
        """The filter as a query string, with its question mark; "" for the plain inbox."""
        said = {
            "scope": self.scope if self.scope != "mine" else "",
            "graph": self.graph,
            "risk": self.risk,
            "q": self.q,
        }
        text = urlencode({name: value for name, value in said.items() if value})
        return f"?{text}" if text else ""

    def applied(self, rows: ApprovalQuerySet) -> ApprovalQuerySet:
        if self.graph:
            rows = rows.filter(graph=self.graph)
        if self.risk:
            rows = rows.filter(risk=self.risk)
        if self.q:
            words = Q(title__icontains=self.q) | Q(body__icontains=self.q) | Q(graph__icontains=self.q)
            rows = rows.filter(words | Q(pk__in=rows.model.objects.called(self.q).values("pk")))
        return rows


@dataclass(frozen=True, slots=True)
class Scope:
    name: str
    word: str | Promise
    count: int | None
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    word: str | Promise
    rows: list[Approval]

    @property
    def is_alarm(self) -> bool:
        return self.name == OVERDUE


class Listing:
    """One reading of the list. What was opened after `until` waits behind "n new"; the page says when it was made."""

    def __init__(
        self, user: User, filter: Filter, until: datetime | None = None, now: datetime | None = None
    ) -> None:
        self.user, self.filter = user, filter
        self.now = now or clock.now()
        self.until = until or self.now

    @classmethod
    def of(cls, user: User, said: Mapping[str, str], now: datetime | None = None) -> Listing:
        until = parse_datetime(said["until"]) if said.get("until") else None
        return cls(user, Filter.of(said), until if until is not None and until.tzinfo else None, now)

    @cached_property
    def rows(self) -> list[Approval]:
        """In order, cut after the first hundred; what was decided while the page was open stays where it was."""
        scope = Approval.objects.in_scope(self.filter.scope, self.user, self.now)
        if self.filter.scope == "decided":
            return list(self.filter.applied(scope).for_list()[:SHOWN])
        held = Q(pk__in=scope.values("pk"))
        if self.until < self.now:
            held |= Q(decided_at__gt=self.until, pk__in=Approval.objects.may_decide(self.user).values("pk"))
        rows = Approval.objects.visible_to(self.user).filter(held, opened_at__lte=self.until)
        return list(self.filter.applied(rows).for_list().by_due(self.now)[:SHOWN])

    @cached_property
    def groups(self) -> list[Group]:
        groups: dict[str, list[Approval]] = {}
        for row in self.rows:
            groups.setdefault(getattr(row, "due_group", "decided"), []).append(row)
        return [Group(name, GROUP_WORDS[name], rows) for name, rows in groups.items()]

    @cached_property
    def count(self) -> int:
        """How many the list holds in all, cut or not."""
        return self.filter.applied(Approval.objects.in_scope(self.filter.scope, self.user, self.now)).count()

    @property
    def hidden(self) -> int:
        return max(0, self.count - len(self.rows)) if len(self.rows) >= SHOWN else 0

    @cached_property
    def fresh(self) -> int:
        """How many have come since the page was made."""
        if self.until == self.now:
            return 0
        scope = Approval.objects.in_scope(self.filter.scope, self.user, self.now)
        return self.filter.applied(scope).filter(opened_at__gt=self.until).count()

    @cached_property
    def scopes(self) -> list[Scope]:
        return [
            Scope(
                name,
                word,
                self._count_of(name),
                replace(Filter(), scope=name).query or "?",
                name == self.filter.scope,
            )
            for name, word in SCOPE_WORDS.items()
        ]

    def _count_of(self, scope: str) -> int | None:
        if scope == "decided":
            return None
        return Approval.objects.in_scope(scope, self.user, self.now).count()

    @property
    def mine(self) -> int:
        return next(scope.count or 0 for scope in self.scopes if scope.name == "mine")

    @cached_property
    def graphs(self) -> list[str]:
        """Names to filter by: of graphs that have ever asked this person something they may see."""
        visible = Approval.objects.visible_to(self.user)
        return list(visible.order_by("graph").values_list("graph", flat=True).distinct())

    @property
    def until_text(self) -> str:
        return self.until.isoformat()

    @property
    def part_query(self) -> str:
        """For a live part of this page: the filter and the moment it was made."""
        glue = "&" if self.filter.query else "?"
        return f"{self.filter.query}{glue}{urlencode({'until': self.until_text})}"

    def place(self, approval: Approval) -> Place:
        """Where an approval stands in this list, and its neighbours."""
        keys = [row.pk for row in self.rows]
        at = keys.index(approval.pk) if approval.pk in keys else None
        if at is None:
            first = next((row for row in self.rows if row.is_open), None)
            return Place(None, len(keys), None, first)
        after = self.rows[at + 1] if at + 1 < len(keys) else None
        return Place(at + 1, len(keys), self.rows[at - 1] if at else None, after)

    def next_open(self, approval: Approval) -> Approval | None:
        """What to show after a decision: the next open one below it, else the first."""
        keys = [row.pk for row in self.rows]
        at = keys.index(approval.pk) + 1 if approval.pk in keys else 0
        others = [row for row in self.rows[at:] + self.rows[:at] if row.is_open and row.pk != approval.pk]
        in_time = (row for row in others if row.due_at is None or row.due_at > self.now)
        return next(in_time, others[0] if others else None)


@dataclass(frozen=True, slots=True)
class Place:
    number: int | None
    count: int
    before: Approval | None
    after: Approval | None
