"""The right of one worker to drive one run: every write of a step goes through it and carries the fence."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from functools import partial
from typing import Any  # node names, trees and column values

from runs.conf import conf
from runs.core import codec
from runs.core.chain import SALT_BYTES, Link, entry_line
from runs.core.graph import END, Graph
from runs.core.outcomes import Lost, Stop
from runs.core.retry import LONGEST_SECONDS
from runs.core.words import storable_text
from runs.engine import clock, sql
from runs.engine.boundaries import boundary
from runs.engine.durably import FAULTS, durably_or_lost
from runs.engine.state import StoredState
from runs.models import statuses
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run
from runs.secrets import guard


class Lease:
    """What a worker knows of the run it drives. A verb returns after its commit, or raises Stop(Lost)."""

    def __init__(
        self, run: Run, graph: Graph, worker: str, reading: clock.Reading, state: StoredState
    ) -> None:
        self.run_id, self.graph, self.worker = run.id, graph, worker
        self.parent_id, self.is_fork = run.parent_id, run.origin is not None
        self.version = run.version  # not the graph's until it is migrated
        self.run_text = str(run.id)
        self.fence, self.seq, self.head = run.fence, run.seq, run.head
        self.node, self.step, self.attempt = run.node, run.step, run.attempt
        self.answers = run.answers
        self.alone = run.alone
        self.ending = run.ending  # how it ends once what it did is undone
        self.reading = reading
        self.until = clock.elapsed() + conf.lease_seconds
        self.state = state
        self.lost = threading.Event()
        self.lines: dict[str, list[object]] = {}  # what the next checkpoint says of the ledger
        self.lock, self.changing = threading.Lock(), threading.Lock()
        self.questions_open = False  # whether this step may have entries to close when it is left

    def now(self) -> datetime:
        return self.reading.now()

    def covers(self, seconds: float) -> bool:
        """Whether the lease surely lasts that much longer."""
        return not self.lost.is_set() and self.until - clock.elapsed() >= seconds

    def extended(self, since: float) -> None:
        """A heartbeat that began at `since` (elapsed seconds) was accepted."""
        self.until = since + conf.lease_seconds

    # -- transitions

    def commit_step(self, target: str, tree: Any) -> None:
        """The node is done: its state and the next node, in one commit; END completes the run."""
        change = self.state.change(tree)
        ended = target == END
        node = self.node if ended else target
        link = self._link("complete" if ended else "step", self.step + 1, change.text, change.snapshot)
        link.status = statuses.COMPLETED if ended else statuses.RUNNING
        changes: dict[str, Any] = {
            "seq": link.seq,
            "step": link.step,
            "head": "",
            "node": node,
        }
        if self.alone:  # no suspect any more: others may be driven beside it, so a death would not be its own
            changes["alone"] = False
        if ended:
            changes |= {
                "status": statuses.COMPLETED,
                "wake_at": None,
                "leased_by": None,
                "finished_at": link.at,
                "error": "",  # of a try before the one that went well
            }
        if self.questions_open or ended:
            changes |= {"attempt": 0, "deaths": 0, "silent": 0}
            self._leaving(link, changes, "superseded" if not ended else "cancelled")
        else:
            self._advance(link, changes, progress=True)
        change.accept()
        self.alone = False
        self.step, self.node, self.attempt = link.step, node, 0
        self.questions_open = False

    def park(self, keys: tuple[str, ...], wake_at: datetime | None) -> None:
        """Commit a wait. If an answer came since the entries were read, the run is due at once."""
        from runs.models.entry import LedgerEntry

        link = self._link("wait", self.step, "", False)
        link.status = statuses.WAITING
        parked = sql.Parked(self.answers, wake_at, link.at)
        changes = {"seq": link.seq, "head": "", "status": link.status, "attempt": 0, "deaths": 0, "silent": 0}
        changes |= {"wake_at": parked, "leased_by": None}

        def wait() -> bool:
            from django.db import transaction

            with transaction.atomic():
                if not sql.advance(self.fence, link.seq - 1, changes, link):
                    return False
                entries = LedgerEntry.objects.filter(run_id=self.run_id, step=self.step + 1)
                entries.filter(awaited=True).exclude(key__in=keys).update(awaited=False)
                entries.filter(key__in=keys, awaited=False).update(awaited=True)
            return True

        self._advance(link, changes, wait)

    def put_off(self, delay: float, error: str, counts: bool) -> None:
        """Try the step again later."""
        link = self._link("retry", self.step, "", False, reason=error)
        link.status, link.attempt = statuses.RETRYING, self.attempt + counts
        changes = {"seq": link.seq, "head": "", "status": link.status, "attempt": link.attempt, "deaths": 0}
        changes |= {"silent": 0, "wake_at": self._later(delay), "leased_by": None}
        if not self.ending:
            changes["error"] = link.reason  # else the one that it ends with stays
        self._advance(link, changes)

    def line_up(self, delay: float, reason: str) -> None:
        """A call waits for its tool's rate. No try was made; nor is it progress: deaths so far still count."""
        link = self._link("pace", self.step, "", False, reason=reason)
        link.status = statuses.RETRYING
        changes = {"seq": link.seq, "head": "", "status": link.status, "wake_at": self._later(delay)}
        changes |= {"leased_by": None, "alone": False}
        self._advance(link, changes)

    def _later(self, delay: float) -> datetime:
        """Not beyond what any database's calendar holds."""
        return self.now() + timedelta(seconds=min(delay, LONGEST_SECONDS))

    def fail(self, kind: str, error: str) -> None:
        """The run ends as a dead letter that keeps its evidence; if its graph wants it, what it did is undone first."""
        from runs.engine import compensating

        if durably_or_lost(partial(compensating.called_for, self.graph, kind, self.run_id)):
            self._compensate_first(kind, error)
            return
        link = self._link("fail", self.step, "", False, reason=error)
        link.status = statuses.FAILED
        changes = {"seq": link.seq, "head": "", "status": link.status, "wake_at": None, "leased_by": None}
        changes |= {"error_kind": kind, "error": link.reason, "finished_at": link.at}
        self._leaving(link, changes, "cancelled")

    def _compensate_first(self, kind: str, error: str) -> None:
        """The next claim begins to undo; no node is called any more."""
        link = self._link("compensate", self.step, "", False, reason=error)
        link.status, link.attempt = statuses.RUNNING, 0
        changes = {
            "seq": link.seq,
            "head": "",
            "status": link.status,
            "ending": statuses.FAILED,
            "attempt": 0,
        }
        changes |= {"wake_at": link.at, "leased_by": None, "deaths": 0, "silent": 0, "alone": False}
        changes |= {"error_kind": kind, "error": link.reason}
        self._leaving(link, changes, "cancelled", keep_sent=True)

    def compensated(self) -> None:
        """All is undone that could be: the run ends as it was to end, with the words and the error of then."""
        begun = Checkpoint.objects.filter(run_id=self.run_id, kind="compensate").order_by("-seq")
        actor, reason = durably_or_lost(begun.values_list("actor", "reason").first)
        kind = "cancel" if self.ending == statuses.CANCELLED else "fail"
        link = self._link(kind, self.step, "", False)
        link.status, link.reason = self.ending, reason
        if kind == "cancel":
            link.actor = actor  # whoever cancelled it
        changes = {"seq": link.seq, "head": "", "status": link.status, "ending": "", "wake_at": None}
        changes |= {"leased_by": None, "finished_at": link.at}
        self._leaving(link, changes, "cancelled")

    def hand_back(self, reason: str) -> None:
        """Let another claim go on, now; no death is counted."""
        link = self._link("hand_back", self.step, "", False, reason=reason)
        link.status = statuses.RUNNING
        changes = {"seq": link.seq, "head": "", "wake_at": self.now(), "leased_by": None, "alone": False}
        self._advance(link, changes)

    def migrated(self, checkpoint: Checkpoint) -> None:
        """The run was brought to the graph's version; the commit raised the fence, and the lease goes on under it."""
        self.version, self.fence = checkpoint.version, checkpoint.fence
        self.seq, self.head = checkpoint.seq, checkpoint.digest
        if checkpoint.step != self.step:
            self.questions_open = False
        self.step, self.node, self.attempt = checkpoint.step, checkpoint.node, checkpoint.attempt
        with self.lock:
            self.lines.clear()

    # -- how a transition is written

    def _link(self, kind: str, step: int, body: str, snapshot: bool, reason: str = "") -> Link:
        return Link(
            run=self.run_text,
            seq=self.seq + 1,
            kind=kind,
            step=step,
            node=self.node,
            status="",
            version=self.version,
            attempt=self.attempt,
            fence=self.fence,
            actor=self.worker,
            reason=storable_text(guard().redact(reason)) if reason else "",
            at=self.reading.now(),
            body=body,
            snapshot=snapshot,
            salt=os.urandom(SALT_BYTES),
            before=self.head,
            entries=self._entries(),
        )

    def _entries(self) -> str:
        if not self.lines:
            return "[]"
        with self.lock:
            return codec.encode(list(self.lines.values()))

    def _leaving(self, link: Link, changes: dict[str, Any], outcome: str, keep_sent: bool = False) -> None:
        """A transition that leaves the step: what is still open in it is closed in the same transaction."""
        from runs.engine import family
        from runs.engine.closing import close_step

        ended = keep_sent or link.status in statuses.ENDED

        def leave() -> bool:
            from django.db import transaction

            with transaction.atomic():
                if not sql.hold(self.run_id, self.fence, link.seq - 1):
                    return False
                run = Run.objects.get(pk=self.run_id)
                lines = close_step(run, outcome, link.at, ended=ended, keep_sent=keep_sent)
                with self.lock:
                    self.lines |= lines
                link.entries = self._entries()
                changes["head"] = link.seal().digest
                if not sql.advance(self.fence, link.seq - 1, changes, link):
                    return False
                if ended:
                    for name, value in changes.items():
                        setattr(run, name, value)
                    end = family.ended if link.status in statuses.ENDED else family.leave_children
                    end(run, link.at)
            return True

        self._advance(link, changes, leave)

    def _advance(self, link: Link, changes: dict[str, Any], act: Any = None, progress: bool = False) -> None:
        if "head" in changes:
            changes["head"] = link.seal().digest
        if act is None:
            act = partial(sql.advance, self.fence, link.seq - 1, changes, link, progress)
        boundary(f"commit {link.kind}")
        try:
            moved = not self.lost.is_set() and act()
        except FAULTS as error:
            moved = durably_or_lost(partial(self._once_more, link, act), after=error)
        if not moved:
            self.lost.set()
            raise Stop(Lost(f"run {self.run_id}: another worker or a verb has taken it"))
        boundary(f"committed {link.kind}")
        self.seq, self.head = link.seq, link.digest
        if self.lines:
            with self.lock:
                self.lines.clear()

    def _once_more(self, link: Link, act: Any) -> bool:
        """After a fault of the database: what was sent may have been committed before the answer was lost."""
        there = (
            Checkpoint.objects.filter(run_id=self.run_id, seq=link.seq)
            .values_list("digest", flat=True)
            .first()
        )
        if there != link.digest:
            return act()
        if self.parent_id is not None and link.status in statuses.ENDED:
            from runs.engine.telling import tell

            tell(self.parent_id)  # what the lost answer would have led to
        return True

    def saw(self, key: str, kind: str, status: str, request_digest: str, result: str | None = None,
            answered_by: str = "", answered_at: datetime | None = None, approval_head: str = "") -> None:  # fmt: skip
        """The next checkpoint's digest covers this entry as it now is."""
        line = entry_line(key, kind, status, request_digest, result, answered_by, answered_at, approval_head)
        with self.lock:
            self.lines[key] = line
