"""How an act of the ledger becomes one commit: under the fence, done again after a fault, covered by the next link."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, TypeVar  # recorded values are the author's

from django.db import IntegrityError, transaction

from runs import hooks, secrets
from runs.core import codec, ledger
from runs.core.errors import Permanent, SecretFound
from runs.core.ledger import DONE, FAILED, IN_DOUBT, INTERRUPT, OPEN, Entry
from runs.core.outcomes import Lost, Stop
from runs.core.words import storable_text
from runs.engine import sql
from runs.engine.boundaries import boundary
from runs.engine.durably import durably_or_lost
from runs.engine.entry_rows import row_of
from runs.engine.lease import Lease
from runs.models.archived import everywhere
from runs.models.entry import LedgerEntry
from runs.models.live_text import LiveText
from runs.models.run import Run

T = TypeVar("T")


class RowActs:
    """The part of the row ledger that writes."""

    lease: Lease
    run_id: str
    step: int
    actor: str
    entries: dict[str, Entry]
    changing: Lock

    def admit(self, entry: Entry) -> None:
        """Raises SecretFound, naming the path, if the question holds a secret's value: before anything is called."""
        guard = secrets.guard()
        for word in (entry.key, entry.name):
            guard.refuse(word, "the key")
        if guard.find(entry.request):
            self._refuse_secret_in(codec.decode(entry.request), entry.name)
            guard.refuse(entry.request, entry.name)

    def _refuse_secret_in(self, tree: Any, name: str) -> None:
        if found := secrets.guard().locate(tree):
            path, secret = found
            raise SecretFound(f"{name} {path}", secret)

    def _add(self, entry: Entry, now: datetime, spoke: bool = False) -> Entry:
        self.admit(entry)
        entry.step = self.step
        row = row_of(entry, self.lease.run_id, self.entries, self.actor, now)

        def insert() -> int | None:
            if entry.kind != INTERRUPT and not spoke:
                return sql.add_entry(self.lease.run_id, self.lease.fence, row)
            with transaction.atomic():
                added = sql.add_entry(self.lease.run_id, self.lease.fence, row)
                if added is not None and spoke:
                    LiveText.objects.hush(self.lease.run_id, self.step, entry.key)
                if added is not None and entry.kind == INTERRUPT:
                    hooks.interrupt_opened.send(
                        sender=LedgerEntry,
                        run=Run.objects.get(pk=self.lease.run_id),
                        entry=LedgerEntry.objects.get(pk=added),
                        request=codec.loads(entry.request),
                        now=now,
                    )
            return added

        boundary(f"open {entry.kind}")
        try:
            entry.id = self._fenced(durably_or_lost(insert, again=lambda: self._mine(entry) or insert()))
        except IntegrityError as error:
            raise self._taken(entry, error) from error
        boundary(f"opened {entry.kind}")
        with self.changing:
            self.entries[entry.key] = entry
        self._saw(entry, now)
        return entry

    def _settle(self, entry: Entry, now: datetime, changes: dict[str, Any], late: str) -> None:
        """Record an outcome: of an open entry, or of a read or value that had none until now."""
        changes |= {"answered_at": now, "answered_by": self.actor, "effective_at": now, "taken_at": now}
        spoke = self._spoken(entry) is not None
        try:
            if entry.id is None:
                kept = entry.result
                entry.result = changes.get("result", entry.result)
                try:
                    self._add(entry, now, spoke)
                finally:
                    entry.result = kept
                self._saw(entry, now)  # the text itself, not the reference that stands in the row
            else:
                self._change(entry, changes | {"attempts": entry.attempts}, spoke)
        except Stop:
            self.remark(entry, "late_result", late)
            raise

    def _change(self, entry: Entry, changes: dict[str, Any], spoke: bool = False) -> None:
        boundary(f"change {entry.kind}")
        act = partial(self._changed, entry, changes, spoke)
        self._fenced(durably_or_lost(act, again=lambda: self._already(entry, changes) or act()))
        boundary(f"changed {entry.kind}")
        self._saw(entry, changes.get("answered_at"))

    def _changed(self, entry: Entry, changes: dict[str, Any], spoke: bool) -> bool:
        """A compensation and what it undoes change together; what was said goes with the call's outcome."""
        run_id, fence = self.lease.run_id, self.lease.fence
        undoes = entry.compensates is not None and changes.get("status") == DONE
        if not undoes and not spoke:
            return sql.change_entry(run_id, fence, entry.id, (OPEN, IN_DOUBT), changes)
        undone = {"status": ledger.COMPENSATED}
        with transaction.atomic():
            changed = sql.change_entry(run_id, fence, entry.id, (OPEN, IN_DOUBT), changes)
            if changed and spoke:
                LiveText.objects.hush(run_id, self.step, entry.key)
            if changed and undoes and not sql.change_entry(run_id, fence, entry.compensates, (DONE,), undone):
                raise IntegrityError(f"{entry.key}: what it undoes is not done")
        return changed

    def _fenced(self, written: T) -> T:
        if not written:
            self.lease.lost.set()
            raise Stop(Lost(f"run {self.run_id}: another worker or a verb has taken it"))
        return written

    def _mine(self, entry: Entry) -> int | None:
        """After a fault: the id of the entry that an earlier try of this very act has inserted."""
        row = LedgerEntry.objects.filter(run_id=self.lease.run_id, step=self.step, key=entry.key).first()
        return row.pk if row is not None and row.request_digest == entry.request_digest else None

    def _already(self, entry: Entry, changes: dict[str, Any]) -> bool:
        return LedgerEntry.objects.filter(pk=entry.id, run__fence=self.lease.fence, **changes).exists()

    def _taken(self, entry: Entry, error: Exception) -> Permanent:
        key = entry.idempotency_key or entry.key
        held = everywhere(LedgerEntry).filter(idempotency_key=entry.idempotency_key).first()
        owner = f"run {held.run_id}" if held is not None else str(error)
        return Permanent(f"key {key!r} is taken by {owner}; put {{run_id}} into the key, or use another")

    def _saw(self, entry: Entry, at: datetime | None) -> None:
        answered = entry.status in (DONE, FAILED)
        self.lease.saw(
            entry.key,
            entry.kind,
            entry.status,
            entry.request_digest,
            entry.result,
            self.actor if answered else "",
            at if answered else None,
        )

    def _words(self, message: str) -> str:
        return storable_text(secrets.guard().redact(message))
