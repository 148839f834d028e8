"""A run's mailbox: what other systems told it, each read by one wait or by none."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any  # payloads are any value

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.conf import conf
from runs.core import codec
from runs.core.errors import CodecError, Permanent
from runs.core.waiting import LONGEST_NAME, check_signal_name
from runs.core.words import is_legible, is_storable, storable_text
from runs.engine import blobs
from runs.errors import ILLEGIBLE, Conflict, Invalid, joined, told
from runs.models.repairs import refuse_nobody
from runs.models.rules import not_blank
from runs.unstorable import fault

if TYPE_CHECKING:
    from runs.models.run import Run

LONGEST_KEY = LONGEST_BY = 200


class SignalQuerySet(models.QuerySet["Signal"]):
    def unread(self) -> SignalQuerySet:
        return self.filter(consumed_by=None)

    def for_wait(self, run_id: Any, name: str, before: datetime | None) -> Signal | None:
        """The oldest unread one of that name, if it came before the wait's deadline."""
        found = self.unread().filter(run=run_id, name=name)
        return (found if before is None else found.filter(at__lt=before)).order_by("pk").first()


class Signal(models.Model):
    run = models.ForeignKey(
        "runs.Run",
        on_delete=models.PROTECT,
        related_name="hot_signals",
        related_query_name="signals",
        db_index=False,
    )
    name = models.CharField(max_length=LONGEST_NAME)
    payload = models.TextField(default="null")
    key = models.CharField(max_length=LONGEST_KEY, null=True, blank=True, help_text="Accepted once under it.")
    by = models.CharField(max_length=LONGEST_BY)
    at = models.DateTimeField()
    consumed_by = models.OneToOneField(
        "runs.LedgerEntry", null=True, blank=True, on_delete=models.PROTECT, related_name="signal"
    )

    objects = SignalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "key"], name="signal_key_once_a_run"),
            models.CheckConstraint(condition=not_blank("name"), name="signal_name_not_blank"),
            models.CheckConstraint(condition=Q(key=None) | not_blank("key"), name="signal_key_not_blank"),
        ]
        indexes = [
            models.Index(fields=["run", "id"], name="signal_of_run"),  # the mailbox on the run's page
            # a wait: the oldest unread of a name
            models.Index(fields=["run", "name"], condition=Q(consumed_by=None), name="signal_unread"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.name}"


class Letter:
    """A signal before it is a row. Raises Invalid for what may not be stored, naming the field or the path."""

    def __init__(self, name: str, payload: Any, key: str | None, by: str) -> None:
        refuse_nobody(by)
        self.name, self.key, self.by = name, key, storable_text(by)[:LONGEST_BY]
        try:
            check_signal_name(name)
            tree = codec.flatten(payload)
            self.text = codec.encode(tree, sort=True)
        except Permanent as error:
            raise Invalid(fault(error), {"name": [fault(error)]}) from error
        except CodecError as error:
            said = told(_("Signal %(name)s: %(fault)s"), name=name, fault=fault(error))
            raise Invalid(said, {error.path: [fault(error.reason)]}) from error
        if key is not None and not _is_key(key):
            said = told(
                _("Give 1 to %(most)s characters, neither NUL nor lone surrogates, or leave it out."),
                most=LONGEST_KEY,
            )
            raise Invalid(joined([_("The signal's key does not fit."), said]), {"key": [said]})
        secrets.refuse(name, "name")
        secrets.refuse(key or "", "key")
        secrets.refuse(self.by, "by")
        if secrets.guard().find(self.text):
            secrets.refuse_in(tree)
            secrets.refuse(self.text, "payload")

    def earlier(self, run: Run) -> Signal | None:
        """The signal that was accepted under this key. Raises Conflict if that was another one."""
        if self.key is None or (there := run.signals.filter(key=self.key).first()) is None:
            return None
        if there.name != self.name or blobs.load_text(run.pk, there.payload, self.name) != self.text:
            raise Conflict(
                told(
                    _(
                        "Run %(run)s has accepted a signal “%(name)s” under the key “%(key)s” already, "
                        "and this one says something else; give it a key of its own."
                    ),
                    run=run.short_id,
                    name=there.name,
                    key=self.key,
                )
            )
        return there

    def put(self, run: Run, now: datetime) -> Signal:
        """Insert it, under the Run lock. Raises Conflict if the run has ended, Invalid if it is too large."""
        if run.ended:
            raise Conflict(told(_("Run %(run)s has ended; it takes no signals any more."), run=run.short_id))
        self._must_be_legible(run)
        try:
            stored = blobs.offload_text(
                run.pk, self.text, f"signal {self.name}", conf.blob_bytes, conf.value_limit_bytes
            )
        except CodecError as error:
            raise Invalid(fault(error), {"payload": [fault(error.reason)]}) from error
        return Signal.objects.create(
            run=run, name=self.name, payload=stored, key=self.key, by=self.by, at=now
        )

    def _must_be_legible(self, run: Run) -> None:
        """A node of before this was asked may wait for another name still; a key of then was found by `earlier`."""
        if not is_legible(self.name) and not run.entries.filter(kind="signal", name=self.name).exists():
            raise Invalid(told(_("The signal's name: %(fault)s"), fault=ILLEGIBLE), {"name": [ILLEGIBLE]})
        if self.key is not None and not is_legible(self.key):
            raise Invalid(told(_("The signal's key: %(fault)s"), fault=ILLEGIBLE), {"key": [ILLEGIBLE]})


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and bool(key.strip()) and len(key) <= LONGEST_KEY and is_storable(key)
