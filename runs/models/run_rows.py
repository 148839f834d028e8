"""Runs as rows: which there are, which one may see, one of them by its name, and one of them locked."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Replace
from django.utils.translation import gettext_lazy as _

from runs.engine import clock
from runs.errors import Conflict, Missing, told
from runs.models.statuses import FAILED, LIVE

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from runs.models.run import Run

_NO_RUN = _("There is no run %(run)s.")


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        """The only door: who started it, on whose behalf, who views or operates its graph, who may or did decide."""
        from runs.sight import visible

        return visible(self, user)

    def lock(self, run_id: uuid.UUID) -> tuple[Run, datetime]:
        """The run, locked for the rest of the transaction, and the database's time read after the lock."""
        try:
            run = self.select_for_update(of=("self",)).get(pk=run_id)
        except self.model.DoesNotExist:
            raise Missing(told(_NO_RUN, run=run_id)) from None
        return run, clock.now()

    def lock_with_family(self, run_id: uuid.UUID) -> tuple[Run, datetime]:
        """The same for what brings an ended run back: the top of its family and its parent are locked before it.

        Whoever erases or archives a family locks its top, and whoever ends the children of a run that run.
        """
        for above in dict.fromkeys(self.filter(pk=run_id).values_list("root", "parent").first() or ()):
            if above not in (None, run_id):
                self.select_for_update(of=("self",)).get(pk=above)
        return self.lock(run_id)

    def named(self, name: str) -> Run:
        """By id, or by the last digits of it that people see. Raises Missing, or Conflict when several fit."""
        digits = name.replace("-", "").lower()
        if len(digits) == 32:
            found = self.filter(pk=_uuid(name, digits))
        elif len(digits) >= 6 and set(digits) <= set("0123456789abcdef"):
            found = self.annotate(digits=Replace(Cast("id", CharField()), Value("-"))).filter(
                digits__endswith=digits
            )
        else:
            said = _("There is no run %(run)s; give its id, or the last six or more digits of it.")
            raise Missing(told(said, run=repr(name)))
        runs = list(found[:2])
        if not runs and len(digits) < 32:
            said = _("There is no run whose id ends in %(run)s; the last six or more digits are taken.")
            raise Missing(told(said, run=repr(name)))
        if not runs:
            raise Missing(told(_NO_RUN, run=repr(name)))
        if len(runs) > 1:
            raise Conflict(told(_("Several runs end in %(run)s; give the whole id."), run=repr(name)))
        return runs[0]

    def live(self) -> RunQuerySet:
        return self.filter(status__in=LIVE)

    def due(self, now: datetime) -> RunQuerySet:
        return self.filter(wake_at__lte=now)

    def dead_letters(self) -> RunQuerySet:
        """Failed runs that want an operator: rejected and expired ones ended as people meant them to."""
        return self.filter(status=FAILED, closed_at=None).exclude(error_kind__in=("rejected", "expired"))


def _uuid(name: str, digits: str) -> uuid.UUID:
    try:
        return uuid.UUID(digits)
    except ValueError:
        raise Missing(told(_NO_RUN, run=repr(name))) from None
