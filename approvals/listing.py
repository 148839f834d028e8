"""The inbox's list: one page of one scope under one filter, read at one moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from approvals import counting, place
from approvals.counting import Count, counted
from approvals.filters import Filter
from approvals.listed import Writer
from approvals.looking import Look, length_of_look, look
from approvals.models import Approval, reach
from approvals.models.inbox import LATER, NO_DEADLINE, OVERDUE, TODAY, due_group, midnight_after
from approvals.models.shown import shown
from approvals.scopes import Scopes
from runs.engine import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.contrib.auth.models import User
    from django.utils.functional import Promise

    from approvals.models.inbox import ApprovalQuerySet
    from approvals.place import Place, Row

SHOWN = 50
LATEST = 500  # of so many that were decided while the page is open, those of the list stay in it
GROUP_WORDS: dict[str, str | Promise] = {
    OVERDUE: _("Overdue"),
    TODAY: _("Today"),
    LATER: _("Later"),
    NO_DEADLINE: _("No deadline"),
    "decided": _("Decided"),
}


@dataclass(frozen=True, slots=True)
class Group:
    """`count` is that of the whole group; None where the list is too long to tell."""

    name: str
    word: str | Promise
    rows: list[SafeString]
    count: int | None

    @property
    def is_alarm(self) -> bool:
        return self.name == OVERDUE

    @property
    def drawn(self) -> SafeString:
        return SafeString("\n    ".join(self.rows))


class Listing:
    """One reading of the list. What was opened after `until` waits behind "n new"; the page says when it was made.

    `open_id`: of the approval that is open beside it; "" for none, or for what is no id.
    """

    def __init__(
        self,
        user: User,
        filter: Filter,
        until: datetime | None = None,
        now: datetime | None = None,
        open_id: str = "",
    ) -> None:
        self.user, self.filter, self.open_id = user, filter, open_id
        self.now = now or clock.now()
        self.until = until or self.now
        self.scopes = Scopes(user, self.now)

    @classmethod
    def of(
        cls, user: User, said: Mapping[str, str], now: datetime | None = None, open_id: str = ""
    ) -> Listing:
        return cls(user, Filter.of(said), _moment(said.get("until", "")), now, open_id)

    def below(self, row: Approval) -> Listing:
        """The same list from the place of `row` on, which need not be in it any more."""
        after = place.text_of(row, self.is_decided)
        listing = Listing(self.user, replace(self.filter, after=after), self.until, self.now)
        listing.scopes = self.scopes
        return listing

    # -- the rows -------------------------------------------------------------------------------------------

    @property
    def is_decided(self) -> bool:
        return self.filter.scope == "decided"

    @property
    def _scope(self) -> ApprovalQuerySet:
        return self.scopes.rows(self.filter.scope)

    @property
    def _narrowed(self) -> ApprovalQuerySet:
        return self.filter.applied(self._scope, self.now, walked=True)

    @cached_property
    def rows(self) -> list[Approval]:
        """One page, in order; what was decided while the page was open stays where it was."""
        return self.rows_and_next[:SHOWN]

    @property
    def has_more(self) -> bool:
        return len(self.rows_and_next) > SHOWN

    @cached_property
    def rows_and_next(self) -> list[Approval]:
        """The page, and one row more if there is one."""
        after = place.of_text(self.filter.after, self.is_decided)
        if self.looked is not None:
            keys = [row[0] for row in self.looked.rows[: SHOWN + 1]]
            if self.is_decided:
                return shown(keys)
            return self._with_decided(keys, after)
        scope = self._narrowed
        if self.is_decided:
            return shown(place.page_of_decided(scope, after, SHOWN + 1))
        if after is None:
            keys = [key for key, _due_at, opened_at in self._first if opened_at <= self.until][: SHOWN + 1]
        else:
            keys = place.page(scope.filter(opened_at__lte=self.until), after, SHOWN + 1)
        return self._with_decided(keys, after)

    def _with_decided(self, keys: list[UUID], after: Place | None) -> list[Approval]:
        if self.until < self.now:
            keys += [key for key in self._decided_meanwhile(after) if key not in keys]
        return sorted(shown(keys), key=place.in_order)[: SHOWN + 1]

    @cached_property
    def looked(self) -> Look | None:
        """Of a list in which not every row can be looked at."""
        scope = self._scope
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
        if self.looked is None or self.looked.end is None:
            return None
        return Count(length_of_look(self.filter))

    @cached_property
    def _first(self) -> list[Row]:
        """(id, due_at, opened_at) of all open rows of the list, or of the first of very many: from one statement come
        the page, the count, those of the groups and of what is new."""
        if self.looked is not None:
            return self.looked.whole or []
        return list(self._narrowed.values_list("pk", "due_at", "opened_at")[: self._most + 1])

    @property
    def _most(self) -> int:
        return reach.most_counted(self.filter.scope, self.user)

    def _decided_meanwhile(self, after: Place | None) -> list[UUID]:
        latest = Approval.objects.decided().filter(decided_at__gt=self.until)
        latest = latest.filter(opened_at__lte=self.until).values("pk")[:LATEST]
        decided = Approval.objects.may_decide(self.user).filter(pk__in=latest)
        return place.page(self.filter.applied(decided, self.now).in_order(), after, SHOWN)

    @cached_property
    def groups(self) -> list[Group]:
        groups: dict[str, list[SafeString]] = {}
        writer = Writer(self.user, self.now, self.filter, self.open_id)
        for row in self.rows:
            group = self._group_of(row)
            groups.setdefault(group, []).append(writer.written(row, group))
        return [
            Group(name, GROUP_WORDS[name], rows, self._in_groups.get(name)) for name, rows in groups.items()
        ]

    def _group_of(self, row: Approval) -> str:
        return "decided" if self.is_decided else due_group(row.due_at, self.now, self._midnight)

    @cached_property
    def _midnight(self) -> datetime:
        return midnight_after(self.now)

    @cached_property
    def _in_groups(self) -> dict[str, int]:
        if self.is_decided:
            return Counter(decided=len(self.rows)) if not self.has_more and not self.filter.after else {}
        if self.count.is_cut or (self.looked is not None and self.looked.whole is None):
            return {}
        old = (due_at for _key, due_at, opened_at in self._first if opened_at <= self.until)
        found = Counter(due_group(due_at, self.now, self._midnight) for due_at in old)
        for row in self.rows:
            found[self._group_of(row)] += not row.is_open  # it stays where it was
        return found

    # -- how many -------------------------------------------------------------------------------------------

    @property
    def is_not_all_counted(self) -> bool:
        """Whether more may need attention than were looked at."""
        gathered = self.scopes.gathered if self.filter.scope == "attention" else None
        return gathered is not None and gathered.is_cut

    @cached_property
    def count(self) -> Count:
        """How many the list holds in all, on this page or not."""
        if self.looked is not None:
            return self.looked.count
        if self.is_decided:
            return counted(self._narrowed, self._most)
        if self.is_not_all_counted:
            return Count(min(len(self._first), counting.MOST), is_cut=True)
        return counting.cut(len(self._first), self._most)

    @property
    def counts_scope(self) -> bool:
        """Whether `count` is that of the scope."""
        is_from_top = self.looked is None or not self.filter.after
        return self.filter.is_plain and not self.is_decided and is_from_top

    @cached_property
    def fresh(self) -> Count:
        """How many have come since the page was made."""
        if self.until == self.now:
            return Count(0)
        if not self.is_decided and self.looked is None and not self.count.is_cut:
            return Count(sum(opened_at > self.until for _key, _due_at, opened_at in self._first))
        scope = self._narrowed
        if self.is_decided:
            return counted(scope.filter(decided_at__gt=self.until, opened_at__gt=self.until))
        return counted(scope.filter(opened_at__gt=self.until).order_by())

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
            return replace(self.filter, after=place.text_at(self.looked.end)).query
        if not self.has_more:
            return ""
        return replace(self.filter, after=place.text_of(self.rows[-1], self.is_decided)).query

    @property
    def first_query(self) -> str:
        return self.filter.kept_query or "?"


def _moment(text: str) -> datetime | None:
    """None for what is no moment with a zone: the list is then read as of now."""
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
