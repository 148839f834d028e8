"""What the admin site calls notices and targets, their fields, and the words that stand in those."""

from __future__ import annotations

from typing import Any  # what the admin site passes on

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from approvals.models import Notice, Target
from approvals.notices import words
from runs.admin_words import call

OCCASIONS: dict[str, Promise] = {
    words.ASKED: _("asked"),
    words.REMINDED: _("reminded"),
    words.ESCALATED: _("escalated"),
    words.ASSIGNED: _("handed over"),
    words.DECIDED: _("decided"),
    words.EXPIRED: _("expired"),
    words.CLOSED: _("closed"),
    words.REOPENED: _("open again"),
    words.MENTIONED: _("mentioned"),
}
CHANNELS: dict[str, Promise] = {
    words.MAIL: _("mail"),
    words.CHAT: _("chat"),
    words.WEBHOOK: _("webhook"),
}
STATUSES: dict[str, Promise] = {
    words.WAITING: _("waiting"),
    words.SENT: _("sent"),
    words.FAILED: _("failed"),
    words.DROPPED: _("not needed any more"),
    words.BUNDLED: _("in another mail"),
}

call(
    Target,
    _("target"),
    _("targets"),
    name=_("name"),
    channel=_("channel"),
    graph=_("graph"),
    reviewer=_("reviewer"),
    occasions=_("occasions"),
    language=_("language"),
    is_on=_("is on"),
    key_number=_("key number"),
    failing_since=_("failing since"),
    sent_at=_("sent at"),
)
call(
    Notice,
    _("notice"),
    _("notices"),
    approval=_("approval"),
    occasion=_("occasion"),
    channel=_("channel"),
    person=_("person"),
    target=_("target"),
    status=_("status"),
    made_at=_("made at"),
    send_at=_("next try"),
    tries=_("tries"),
)


class _WordFilter(admin.SimpleListFilter):
    """By a field of a closed set of words."""

    words: dict[str, Promise]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Promise]]:
        return list(self.words.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        known = self.value() in self.words
        return queryset.filter(**{str(self.parameter_name): self.value()}) if known else queryset


class StatusFilter(_WordFilter):
    title, parameter_name, words = _("status"), "status", STATUSES


class ChannelFilter(_WordFilter):
    title, parameter_name, words = _("channel"), "channel", CHANNELS


class OccasionFilter(_WordFilter):
    title, parameter_name, words = _("occasion"), "occasion", OCCASIONS
