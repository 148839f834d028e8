"""The inbox's scopes: the rows of each, and the number that stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from django.core.cache import caches
from django.utils.translation import gettext_lazy as _

from approvals import counting
from approvals.counting import REMEMBERED, Count
from approvals.filters import Filter
from approvals.models import Approval, attention, reach

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.utils.functional import Promise

    from approvals.listing import Listing
    from approvals.models.inbox import ApprovalQuerySet

MANY = 1_000  # of more that are open, not each is asked beside another scope whether it may need attention
VERY_MANY = "approvals:very-many-open"
COUNTED = ("mine", "teams", "all")
SCOPE_WORDS: dict[str, str | Promise] = {
    "mine": _("Mine"),
    "teams": _("My teams"),
    "all": _("All"),
    "attention": _("Attention"),
    "decided": _("Decided"),
}


class Scopes:
    """The rows of each scope for one person at one moment, made once."""

    def __init__(self, user: User, now: datetime) -> None:
        self.user, self.now = user, now
        self._rows: dict[str, ApprovalQuerySet] = {}

    def rows(self, name: str) -> ApprovalQuerySet:
        if name not in self._rows:
            if not self._rows:
                reach.weigh(self.user)
            if name == "attention" and self.gathered is not None:
                rows = Approval.objects.in_need(self.user, self.now, self.gathered).in_order()
            else:
                rows = Approval.objects.in_scope(name, self.user, self.now)
            self._rows[name] = rows
        return self._rows[name]

    @cached_property
    def gathered(self) -> attention.Found | None:
        """What needs attention; None where so few may need it that the rule is asked of each."""
        if not self.user.is_active:
            return None
        if not reach.sees_few(self.user):
            return attention.found(Approval.objects.all(), self.now, self.user)
        if self.doubtful is not None and self.doubtful <= attention.ASKED:
            return None
        return attention.found_among_few(
            reach.seen_by(Approval.objects.open(), self.user, live=True), self.now
        )

    @cached_property
    def doubtful(self) -> int | None:
        """How many may need attention; None where too many are open to look at each."""
        if caches["process"].get(VERY_MANY):
            return None
        found, doubtful = Approval.objects.doubts(self.now, MANY + 1)
        if found <= MANY:
            return doubtful
        caches["process"].set(VERY_MANY, True, REMEMBERED)
        return None


@dataclass(frozen=True, slots=True)
class Scope:
    """One of them as the page offers it; `count` is None where none is told."""

    name: str
    word: str | Promise
    count: Count | None
    query: str
    is_current: bool


class Numbers:
    """How many are in each scope but Decided, whatever the filter of the list that stands below."""

    def __init__(self, listing: Listing) -> None:
        self._listing, self._user = listing, listing.user

    @cached_property
    def scopes(self) -> list[Scope]:
        current = self._listing.filter.scope
        return [
            Scope(
                name,
                word,
                self._counts.get(name),
                replace(Filter(), scope=name).query or "?",
                name == current,
            )
            for name, word in SCOPE_WORDS.items()
        ]

    @property
    def mine(self) -> Count:
        return self._counts["mine"] or Count(0)

    @property
    def others_wait(self) -> bool:
        """Whether anything is open that one may see."""
        return bool(self._counts.get("all"))

    @cached_property
    def _counts(self) -> dict[str, Count]:
        """One statement for all that are not known yet."""
        known: dict[str, Count | None] = {name: counting.many_remembered(self._key(name)) for name in COUNTED}
        if self._listing.counts_scope:
            known[self._listing.filter.scope] = self._listing.count
        if "attention" not in known:
            known["attention"] = self._known_attention()
        missing = [name for name in (*COUNTED, "attention") if known.get(name) is None]
        found = self._found(missing)
        for name in COUNTED:
            if name in found:
                counting.remember_many(self._key(name), found[name])
        if "attention" in found and self._are_very_many:
            caches["process"].set(self._attention_key, found["attention"], REMEMBERED)
        return known | found

    def _found(self, names: list[str]) -> dict[str, Count]:
        rows = self._listing.scopes.rows
        if "attention" not in names and self._user.is_active and reach.sees_few(self._user):
            numbers = rows("all").numbers(self._user, names)  # each of these rows is read once
            return {name: counting.cut(number) for name, number in numbers.items()}
        lists = {name: reach.countable(name, rows(name), self._user) for name in names}
        return counting.counted_together(lists)

    def _key(self, scope: str) -> str:
        return f"{scope}:{self._user.pk}"

    @property
    def _attention_key(self) -> str:
        return f"approvals:attention:{self._user.pk}"

    def _known_attention(self) -> Count | None:
        """What need not be counted of the scope Attention, beside another scope. For it people are counted approval by
        approval, so with very many open ones not each time."""
        if not self._are_very_many:
            return None if self._listing.scopes.doubtful else Count(0)
        return caches["process"].get(self._attention_key)

    @property
    def _are_very_many(self) -> bool:
        return self._listing.scopes.doubtful is None
