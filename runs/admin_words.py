"""What the admin site calls models and their fields, in the reader's language.

Words of pages, in which the database has no part: so no migration carries them (docs/adr/0033).
"""

from __future__ import annotations

from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from runs.models import GraphStop, QueueLimit, Run, Schedule
from runs.pages.recorded import Sentences


def call(model: type[Model], one: str | Promise, many: str | Promise, **fields: str | Promise) -> None:
    """Before a form of `model` is made, which takes its labels from the fields."""
    model._meta.verbose_name, model._meta.verbose_name_plural = one, many
    for name, word in fields.items():
        model._meta.get_field(name).verbose_name = word


call(
    Run,
    _("run"),
    _("runs"),
    id=_("id"),
    graph=_("graph"),
    version=_("version"),
    root=_("root"),
    created_at=_("created at"),
    finished_at=_("finished at"),
)
call(
    Schedule,
    _("schedule"),
    _("schedules"),
    graph=_("graph"),
    name=_("name"),
    cron=_("cron expression"),
    zone=_("time zone"),
    input=_("input"),
    slot_field=_("slot field"),
    catch_up=_("catch up"),
    most=_("at most"),
    fault=_("fault"),
)
call(
    QueueLimit,
    _("queue limit"),
    _("queue limits"),
    queue=_("queue"),
    at_once=_("at once"),
    at_once_a_lane=_("at once a lane"),
    starts=_("starts"),
    starts_a_lane=_("starts a lane"),
    per_seconds=_("per seconds"),
)
call(
    GraphStop,
    _("graph stop"),
    _("graph stops"),
    graph=_("graph"),
    reason=_("reason"),
    at=_("at"),
)

# What the core has against a schedule that somebody typed.
of_schedules = Sentences(
    gettext_noop("Give a name of 1 to %(most)s characters that can be printed, without a colon."),
    gettext_noop("%(given)s is no cron expression (%(said)s). An example: 30 2 * * 1-5."),
    gettext_noop("write five fields: minute, hour, day of the month, month, day of the week"),
    gettext_noop("%(given)s never comes."),
    gettext_noop("%(given)s is no time zone that is known here. An example: Europe/Berlin."),
    gettext_noop("%(given)s: choose one of %(all)s."),
    gettext_noop("Give a number from 1 to %(most)s."),
)
