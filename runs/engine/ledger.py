"""The ledger in rows: each act is one commit that carries the fence (DESIGN section 6)."""

from __future__ import annotations

import random
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any  # recorded values are the author's

from django.db import IntegrityError, transaction

from runs import hooks, secrets
from runs.conf import conf
from runs.core import codec, ledger
from runs.core.ledger import DONE, FAILED, IN_DOUBT, OPEN, Entry
from runs.core.moments import Until, moment_of
from runs.engine import blobs, clock
from runs.engine.acts import RowActs
from runs.engine.ancestry import done_before_parting, stands
from runs.engine.boundaries import boundary
from runs.engine.children import RowChildren
from runs.engine.closing import line_of
from runs.engine.durably import durably_or_lost
from runs.engine.entry_rows import entry_of
from runs.engine.lease import Lease
from runs.engine.meanwhile import RowMeanwhile
from runs.engine.waiting import look_at_wait
from runs.models.archived import everywhere
from runs.models.entry import LedgerEntry
from runs.models.remark import Remark
from runs.models.run import Run


class RowLedger(RowActs, RowChildren, RowMeanwhile):
    """The entries of the step in progress, as the claim saw them and as this execution changes them."""

    def __init__(self, lease: Lease, rows: list[LedgerEntry]) -> None:
        self.lease = lease
        self.run_id = lease.run_text
        self.node, self.step = lease.node, lease.step + 1
        self.actor = lease.worker
        self.entries = {row.key: entry_of(row) for row in rows} if rows else {}
        self.changing = lease.changing
        self.speakers = {}

    @property
    def operators(self) -> list[str]:
        return [self.lease.graph.operators] if self.lease.graph.operators else []

    # -- acts

    def open(self, entry: Entry, tried: timedelta | None = None) -> Entry:
        """The intent: committed before the call."""
        now = self.lease.now()
        if tried is not None:
            entry.tried_at, entry.due_at = now, now + tried + conf.lease
            entry.attempts += 1
        return self._add(entry, now)

    def ask(self, entry: Entry, due: Until | None) -> Entry:
        """Open a question to people; whoever listens writes the approval in the same transaction."""
        now = self.lease.now()
        entry.due_at = moment_of(due, now)
        self.lease.questions_open = True
        return self._add(entry, now)

    def wait(self, entry: Entry, until: Until | None) -> Entry:
        """Open a wait, or look again at an open one."""
        entry.step = self.step
        boundary(f"look at {entry.kind}")
        row = self._fenced(durably_or_lost(lambda: look_at_wait(self.lease, entry, until)))
        boundary(f"looked at {entry.kind}")
        if row.status == OPEN:
            self.lease.questions_open = True
        with self.changing:
            self.entries[entry.key] = entry_of(row)
        with self.lease.lock:
            self.lease.lines[entry.key] = line_of(row)
        return self.entries[entry.key]

    def record(self, entry: Entry, value: Any) -> Entry:
        """The outcome; the author gets the stored, decoded form, also the first time."""
        tree = codec.flatten(value)
        if entry.kind == ledger.VALUE:  # the node's own words, which it could have put otherwise
            self._refuse_secret_in(tree, entry.name)
        tree = secrets.guard().redact_tree(tree)
        text = codec.encode(tree, sort=True)
        stored = blobs.offload_text(
            self.lease.run_id, text, entry.key, conf.blob_bytes, conf.value_limit_bytes
        )
        now = self.lease.now()
        entry.result, entry.status = text, DONE
        self._settle(entry, now, {"status": DONE, "result": stored}, late=text)
        return entry

    def fail(self, entry: Entry, kind: str, message: str) -> Entry:
        message = self._words(message)
        entry.status, entry.error_kind, entry.error = FAILED, kind, message
        changes = {"status": FAILED, "error_kind": kind, "error": message}
        self._settle(entry, self.lease.now(), changes, late=message)
        return entry

    def try_again(self, entry: Entry, limit: timedelta) -> None:
        now = self.lease.now()
        entry.status, entry.tried_at, entry.due_at = OPEN, now, now + limit + conf.lease
        entry.attempts += 1
        self._change(entry, {"tried_at": now, "due_at": entry.due_at, "attempts": entry.attempts})

    def failed_try(self, entry: Entry, message: str) -> None:
        entry.tried_at, entry.due_at, entry.error = None, None, self._words(message)
        if entry.id is None:
            self._add(entry, self.lease.now())
        else:
            self._change(
                entry, {"tried_at": None, "due_at": None, "error": entry.error, "attempts": entry.attempts}
            )

    def unclear(self, entry: Entry, message: str) -> None:
        """What the call ended with, though nobody knows whether it happened: for whoever has to find out."""
        entry.error = self._words(message)
        self._change(entry, {"error": entry.error, "attempts": entry.attempts})

    def doubt(self, entry: Entry, message: str, under_way: bool = True) -> None:
        entry.status, entry.error = IN_DOUBT, self._words(message)
        changes: dict[str, Any] = {"status": IN_DOUBT, "error": entry.error, "attempts": entry.attempts}
        if not under_way:
            entry.tried_at, entry.due_at = None, None
            changes |= {"tried_at": None, "due_at": None}
        self._change(entry, changes)

    def supersede(self, entry: Entry) -> None:
        """A question whose subject has changed: closed, and asked anew under the next number."""

        def close() -> LedgerEntry | None:
            with transaction.atomic():
                run, at = Run.objects.lock(self.lease.run_id)
                if run.fence != self.lease.fence:
                    return None
                row = LedgerEntry.objects.get(pk=entry.id)
                answered_at = row.answered_at or at  # what was answered keeps when it was
                LedgerEntry.objects.filter(pk=row.pk).update(status="cancelled", answered_at=answered_at)
                row.refresh_from_db()
                hooks.interrupt_closed.send(
                    sender=LedgerEntry, run=run, entry=row, outcome="superseded", now=at
                )
            return row

        entry.status = ledger.CANCELLED
        boundary("supersede")
        row = self._fenced(durably_or_lost(close))
        boundary("superseded")
        with self.lease.lock:
            self.lease.lines[entry.key] = line_of(row)

    def remark(self, entry: Entry | None, kind: str, body: str) -> None:
        """Evidence outside the chain; the one thing that may come late."""
        boundary("remark")
        with suppress(IntegrityError):  # the run was erased meanwhile, and takes none
            Remark.objects.create(
                run_id=self.lease.run_id,
                entry_id=entry.id if entry is not None else None,
                kind=kind,
                worker=self.actor,
                fence=self.lease.fence,
                body=self._words(body),
                at=clock.now(),
            )

    # -- look-ups

    def may_call(self, entry: Entry | None) -> bool:
        """Right before a call: the lease covers a heartbeat, and the intent is younger than a lease less that."""
        margin = conf.heartbeat_seconds
        young = (
            entry is None
            or entry.tried_at is None
            or ((self.lease.now() - entry.tried_at).total_seconds() <= conf.lease_seconds - margin)
        )
        return young and self.lease.covers(margin)

    def holder(self, idempotency_key: str) -> tuple[str, Entry] | None:
        """Whoever has it, also in the archive; of what a fork's origin had done before they parted, the fork has it."""
        everyone = everywhere(LedgerEntry)
        row = durably_or_lost(everyone.filter(idempotency_key=idempotency_key).first)
        before = None
        if self.lease.is_fork and (row is None or row.run_id != self.lease.run_id):
            before = durably_or_lost(partial(done_before_parting, self.lease.run_id, idempotency_key))
            row = before or row
        if row is None:
            return None
        if row.decided_by_id is not None:
            row.decided_by = durably_or_lost(everyone.filter(pk=row.decided_by_id).first)
        entry = entry_of(row)
        if before is None and row.status == FAILED and row.step < self.step:
            entry.aside = not durably_or_lost(partial(stands, row))
        if row.decided_by is not None:
            proposed = row.decided_by.request_value()["payload"]
            entry.proposal_digest = codec.digest(codec.dumps(proposed))
        return self.run_id if before is not None else str(row.run_id), entry

    def to_compensate(self) -> Entry | None:
        """The next write to undo, of whatever step of the run."""
        row = durably_or_lost(LedgerEntry.objects.filter(run_id=self.lease.run_id).to_compensate().first)
        return None if row is None else entry_of(row)

    def now(self) -> datetime:
        return self.lease.now()

    def chance(self) -> float:
        return random.random()

    def uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def secret(self, name: str) -> str:
        return secrets.reveal(name)

    def put(self, content: bytes, media_type: str) -> codec.BlobRef:
        secrets.guard().refuse(content.decode("utf-8", "replace"), "blob")
        secrets.guard().refuse(media_type, "the blob's media type")
        return durably_or_lost(
            lambda: blobs.put(self.lease.run_id, content, media_type, conf.value_limit_bytes)
        )

    def read(self, blob: codec.BlobRef) -> bytes:
        return blobs.read(self.lease.run_id, blob.sha256)
