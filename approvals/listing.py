"""The inbox's list: one page of one scope under one filter, read at one moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.core.cache import caches
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from approvals import counting, place
from approvals.counting import REMEMBERED, Count, counted
from approvals.filters import AGES, DEADLINES, RISK_WORDS, Filter
from approvals.looking import Look, length_of_look, look
from approvals.models import Approval, SavedFilter, attention, reach
from approvals.models.inbox import LATER, NO_DEADLINE, OVERDUE, TODAY, due_group, midnight_after
from approvals.place import Place
from runs.engine import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.contrib.auth.models import User
    from django.utils.functional import Promise

    from approvals.models.inbox import ApprovalQuerySet
    from runs.models import Run

SHOWN = 50
MANY = 1_000
LATEST = 500  # of so many that were decided while the page is open, those of the list stay in it
VERY_MANY = "approvals:very-many-open"
COUNTED = ("mine", "teams", "all")
SAMPLE = 100  # of so many rows the filter's form tells which graphs and people there are
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
class Scope:
    name: str
    word: str | Promise
    count: Count | None
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Group:
    """`count` is that of the whole group; None where the list is too long to tell."""

    name: str
    word: str | Promise
    rows: list[Approval]
    count: int | None

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
        self._scopes: dict[str, ApprovalQuerySet] = {}

    @classmethod
    def of(cls, user: User, said: Mapping[str, str], now: datetime | None = None) -> Listing:
        return cls(user, Filter.of(said), _moment(said.get("until", "")), now)

    # -- the rows -------------------------------------------------------------------------------------------

    @property
    def is_decided(self) -> bool:
        return self.filter.scope == "decided"

    @cached_property
    def rows(self) -> list[Approval]:
        """One page, in order; what was decided while the page was open stays where it was."""
        return self._read[:SHOWN]

    @property
    def has_more(self) -> bool:
        return len(self._read) > SHOWN

    @cached_property
    def _read(self) -> list[Approval]:
        """The page, and one row more if there is one."""
        after = place.of_text(self.filter.after, self.is_decided)
        if self._look is not None:
            keys = [row[0] for row in self._look.rows[: SHOWN + 1]]
            if self.is_decided:
                return self._shown(keys, Approval.objects.for_list())
            return self._with_decided(keys, after)
        scope = self.filter.applied(self._scope(self.filter.scope), self.now, walked=True)
        if self.is_decided:
            return self._shown(place.page_of_decided(scope, after, SHOWN + 1), Approval.objects.for_list())
        if after is None:
            keys = [key for key, _due_at, opened_at in self._first if opened_at <= self.until][: SHOWN + 1]
        else:
            keys = place.page(scope.filter(opened_at__lte=self.until), after, SHOWN + 1)
        return self._with_decided(keys, after)

    def _with_decided(self, keys: list[UUID], after: Place | None) -> list[Approval]:
        if self.until < self.now:
            keys += [key for key in self._decided_meanwhile(after) if key not in keys]
        rows = self._shown(keys, Approval.objects.for_list().by_due(self.now))
        return sorted(rows, key=place.in_order)[: SHOWN + 1]

    @cached_property
    def _look(self) -> Look | None:
        """Of a list in which not every row can be looked at."""
        scope = self._scope(self.filter.scope)
        is_plain, name = self.filter.is_plain, self.filter.scope
        if reach.is_short(name, self.user) or (is_plain and reach.is_quick(name, self.user)):
            return None
        if not self.is_decided:
            scope = scope.filter(opened_at__lte=self.until)
        after = place.of_text(self.filter.after, self.is_decided)
        return look(scope, self.filter, self.now, after, SHOWN + 1, is_decided=self.is_decided)

    @property
    def looked_through(self) -> Count | None:
        """How many rows were, where that was all that was done and there may be more."""
        if self._look is None or self._look.end is None:
            return None
        return Count(length_of_look(self.filter))

    @cached_property
    def _first(self) -> list[tuple[UUID, datetime | None, datetime]]:
        """(id, due_at, opened_at) of all open rows of the list, or of the first of very many: from one statement come
        the page, the count, those of the groups and of what is new."""
        if self._look is not None:
            return self._look.whole or []
        rows = self.filter.applied(self._scope(self.filter.scope), self.now, walked=True)
        return list(rows.values_list("pk", "due_at", "opened_at")[: self._most + 1])

    @property
    def _most(self) -> int:
        return reach.most_counted(self.filter.scope, self.user)

    def _decided_meanwhile(self, after: Place | None) -> list[UUID]:
        latest = Approval.objects.decided().filter(decided_at__gt=self.until)
        latest = latest.filter(opened_at__lte=self.until).values("pk")[:LATEST]
        decided = Approval.objects.may_decide(self.user).filter(pk__in=latest)
        return place.page(self.filter.applied(decided, self.now).in_order(), after, SHOWN)

    @staticmethod
    def _shown(keys: list[UUID], rows: ApprovalQuerySet) -> list[Approval]:
        """The rows of a page with all that is shown: read after the page was cut, so that only they are wide."""
        found = {row.pk: row for row in rows.filter(pk__in=keys)}
        return [found[key] for key in keys if key in found]

    @cached_property
    def groups(self) -> list[Group]:
        groups: dict[str, list[Approval]] = {}
        for row in self.rows:
            groups.setdefault(getattr(row, "due_group", "decided"), []).append(row)
        return [
            Group(name, GROUP_WORDS[name], rows, self._in_groups.get(name)) for name, rows in groups.items()
        ]

    @cached_property
    def _in_groups(self) -> dict[str, int]:
        if self.is_decided:
            return Counter(decided=len(self.rows)) if not self.has_more and not self.filter.after else {}
        if self.count.is_cut or (self._look is not None and self._look.whole is None):
            return {}
        old = (due_at for _key, due_at, opened_at in self._first if opened_at <= self.until)
        midnight = midnight_after(self.now)
        found = Counter(due_group(due_at, self.now, midnight) for due_at in old)
        for row in self.rows:
            found[row.due_group] += not row.is_open  # it stays where it was
        return found

    # -- the numbers ----------------------------------------------------------------------------------------

    def _scope(self, name: str) -> ApprovalQuerySet:
        if name not in self._scopes:
            if not self._scopes:
                reach.weigh(self.user)
            if name == "attention" and self._doubted is not None:
                rows = Approval.objects.in_need(self.user, self.now, self._doubted).in_order()
            else:
                rows = Approval.objects.in_scope(name, self.user, self.now)
            self._scopes[name] = rows
        return self._scopes[name]

    @cached_property
    def _doubted(self) -> attention.Found | None:
        """What needs attention, gathered from indexes; None where so few can be seen that each can be asked."""
        if not self.user.is_active or reach.sees_few(self.user):
            return None
        return attention.found(Approval.objects.all(), self.user, self.now)

    @property
    def is_not_all_counted(self) -> bool:
        """Whether more may need attention than were looked at."""
        return self.filter.scope == "attention" and self._doubted is not None and self._doubted.is_cut

    @cached_property
    def count(self) -> Count:
        """How many the list holds in all, on this page or not."""
        if self._look is not None:
            return self._look.count
        if self.filter.scope == "attention" and self._doubted is not None and self._doubted.is_cut:
            return Count(min(len(self._first), counting.MOST), is_cut=True)
        if self.is_decided:
            scope = self._scope("decided")
            return counted(self.filter.applied(scope, self.now, walked=True), self._most)
        return counting.cut(len(self._first), self._most)

    @cached_property
    def fresh(self) -> Count:
        """How many have come since the page was made."""
        if self.until == self.now:
            return Count(0)
        if not self.is_decided and self._look is None and not self.count.is_cut:
            return Count(sum(opened_at > self.until for _key, _due_at, opened_at in self._first))
        scope = self.filter.applied(self._scope(self.filter.scope), self.now, walked=True)
        if self.is_decided:
            return counted(scope.filter(decided_at__gt=self.until, opened_at__gt=self.until))
        return counted(scope.filter(opened_at__gt=self.until).order_by())

    @property
    def others_wait(self) -> bool:
        """Whether anything is open that one may see."""
        return bool(self._counts.get("all"))

    @cached_property
    def scopes(self) -> list[Scope]:
        return [
            Scope(
                name,
                word,
                self._counts.get(name),
                replace(Filter(), scope=name).query or "?",
                name == self.filter.scope,
            )
            for name, word in SCOPE_WORDS.items()
        ]

    @cached_property
    def _counts(self) -> dict[str, Count]:
        """Of each scope but Decided, whatever the filter: one statement for all that are not known yet."""
        known: dict[str, Count | None] = {name: counting.many_remembered(self._key(name)) for name in COUNTED}
        if self.filter.is_plain and not self.is_decided and (self._look is None or not self.filter.after):
            known[self.filter.scope] = self.count
        if "attention" not in known:
            known["attention"] = self._no_attention()
        lists = {
            name: reach.countable(name, self._scope(name), self.user)
            for name in (*COUNTED, "attention")
            if known.get(name) is None
        }
        found = counting.counted_together(lists)
        for name in COUNTED:
            if name in found:
                counting.remember_many(self._key(name), found[name])
        if "attention" in found and self._are_very_many:
            caches["process"].set(self._attention_key, found["attention"], REMEMBERED)
        return known | found

    def _key(self, scope: str) -> str:
        return f"{scope}:{self.user.pk}"

    @property
    def _attention_key(self) -> str:
        return f"approvals:attention:{self.user.pk}"

    def _no_attention(self) -> Count | None:
        """What need not be counted of the scope Attention, beside another scope. For it people are counted approval by
        approval, so with very many open ones not each time."""
        if not self._are_very_many:
            return None if self._doubtful else Count(0)
        return caches["process"].get(self._attention_key)

    @cached_property
    def _doubtful(self) -> int | None:
        """How many may need attention; None where too many are open to look at each."""
        if caches["process"].get(VERY_MANY):
            return None
        found, doubtful = Approval.objects.doubts(self.now, MANY + 1)
        if found <= MANY:
            return doubtful
        caches["process"].set(VERY_MANY, True, REMEMBERED)
        return None

    @property
    def _are_very_many(self) -> bool:
        return self._doubtful is None

    @property
    def mine(self) -> Count:
        return self._counts["mine"] or Count(0)

    # -- the form of the filter -----------------------------------------------------------------------------

    ages, deadlines, risks = (
        {name: word for name, (_length, word) in AGES.items()},
        DEADLINES,
        RISK_WORDS,
    )

    @cached_property
    def _sample(self) -> list[tuple[str, str | None, str | None]]:
        if self.filter.is_plain and not self.is_decided and self._look is None:
            if len(self._first) <= len(self.rows):
                return [(row.graph, *_requesters(row.run)) for row in self.rows]
            rows = Approval.objects.filter(pk__in=[row[0] for row in self._first[:SAMPLE]])
        else:
            rows = self._sampled
        return list(rows.values_list("graph", "run__on_behalf_of__username", "run__created_by__username"))

    @property
    def _sampled(self) -> ApprovalQuerySet:
        name = "all" if self.filter.scope == "attention" else self.filter.scope
        rows = self._scope(name)
        if self._look is not None and self.filter.is_plain:
            return Approval.objects.filter(pk__in=[row[0] for row in self._look.rows[:SAMPLE]])
        return (rows if self.is_decided else reach.near(name, rows, self.user))[:SAMPLE]

    @property
    def graphs(self) -> list[str]:
        """Names to filter by: of this scope, and the one that is chosen."""
        return sorted({row[0] for row in self._sample} | {self.filter.graph} - {""})

    @property
    def requesters(self) -> list[str]:
        return sorted({name for row in self._sample for name in row[1:] if name})

    @cached_property
    def saved(self) -> list[SavedFilter]:
        return list(SavedFilter.objects.filter(person=self.user))

    @property
    def saved_as(self) -> SavedFilter | None:
        """The saved filter that this list shows."""
        return next((each for each in self.saved if each.query == self.filter.kept_query), None)

    # -- addresses ------------------------------------------------------------------------------------------

    @property
    def until_text(self) -> str:
        return self.until.isoformat()

    @property
    def part_query(self) -> str:
        """For a live part of this page: the filter and the moment it was made."""
        glue = "&" if self.filter.query else "?"
        return f"{self.filter.query}{glue}{urlencode({'until': self.until_text})}"

    @property
    def next_query(self) -> str:
        """The next page; "" on the last."""
        if not self.has_more and self.looked_through:
            return replace(self.filter, after=place.text_at(self._look.end)).query
        if not self.has_more:
            return ""
        return replace(self.filter, after=place.text_of(self.rows[-1], self.is_decided)).query

    @property
    def first_query(self) -> str:
        return self.filter.kept_query or "?"

    # -- one approval in it ---------------------------------------------------------------------------------

    def place(self, approval: Approval) -> Standing:
        """Where an approval stands in this list, and its neighbours."""
        keys = [row.pk for row in self.rows]
        at = keys.index(approval.pk) if approval.pk in keys else None
        if at is None:
            first = next((row for row in self.rows if row.is_open), None)
            return Standing(None, self.count, None, first)
        after = self.rows[at + 1] if at + 1 < len(keys) else None
        number = at + 1 if not self.filter.after else None
        return Standing(number, self.count, self.rows[at - 1] if at else None, after)

    def next_open(self, approval: Approval) -> Approval | None:
        """What to show after a decision: the next open one below it, also on the next page, else the first."""
        keys = [row.pk for row in self.rows]
        at = keys.index(approval.pk) + 1 if approval.pk in keys else 0
        following = self._read[at:]  # with the first row of the next page
        others = [row for row in following + self.rows[:at] if row.is_open and row.pk != approval.pk]
        in_time = (row for row in others if row.due_at is None or row.due_at > self.now)
        return next(in_time, others[0] if others else None)


def _requesters(run: Run) -> list[str | None]:
    return [one.username if one is not None else None for one in (run.on_behalf_of, run.created_by)]


def _moment(text: str) -> datetime | None:
    """None for what is no moment with a zone: the list is then read as of now."""
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Standing:
    """`number` is unknown off the first page."""

    number: int | None
    count: Count
    before: Approval | None
    after: Approval | None
