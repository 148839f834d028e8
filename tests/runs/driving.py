"""Small steps for tests of the engine: claim as a named worker, drive, answer, cut the clock short, look at rows."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import transaction

from runs import chores, registry
from runs.conf import conf
from runs.core import codec
from runs.core.graph import Graph
from runs.core.outcomes import Outcome
from runs.engine import boundaries, clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.verify import first_bad_row
from runs.models import LedgerEntry, Run
from runs.testing.crash import Report
from runs.testing.process import die, in_child
from tests.amounts import KILLS


def kills_of(report: Report) -> int:
    """How many a report must tell of."""
    if isinstance(KILLS, range):
        return sum(number <= len(report.boundaries) for number in KILLS)
    return len(report.boundaries) if KILLS is None else KILLS


@contextmanager
def registered(*graphs: Graph):
    for graph in graphs:
        registry.add(graph)
    try:
        yield
    finally:
        for graph in graphs:
            registry.remove(graph)


def claim(run: Run, worker: str = "w1", alone: bool = True) -> Drive | None:
    taken = Claimer(worker).claim(alone=alone, only=run.pk)
    return None if taken is None else Drive(*taken)


def drive(run: Run, worker: str = "w1") -> Outcome | None:
    """Claim and drive as far as it goes without an answer or a later time."""
    claimed = claim(run, worker)
    outcome = None if claimed is None else claimed.run()
    run.refresh_from_db()
    return outcome


def killed_at(run: Run, boundary: str) -> None:
    """A worker in a process of its own claims the run and is killed there; its lease runs out."""

    def work(_tell: Any) -> None:
        boundaries.on_boundary = lambda name: die() if name == boundary else None
        claimed = claim(run, "doomed")
        assert claimed is not None, "there is nothing to claim"
        claimed.run()

    assert in_child(work).killed, f"nothing reached {boundary!r}"
    pass_lease()


def answer(
    run: Run, key: str | None = None, verdict: str = "approve", undo: float = 0, **said: Any
) -> LedgerEntry:
    """Answer an open question as a person would, `undo` seconds before it becomes effective."""
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        open_ones = LedgerEntry.objects.filter(run=run, kind="interrupt", status="open")
        entry = open_ones.get(key=key) if key else open_ones.get()
        payload = said.get("payload", entry.request_value()["payload"])
        outcome = {"approve": "approved", "edit": "approved_with_edits", "reject": "rejected"}.get(
            verdict, "responded"
        )
        result = {
            "outcome": outcome,
            "verdict": verdict,
            "payload": payload,
            "reason": said.get("reason", ""),
        }
        result["by"] = said.get("by", "ada")
        digest = codec.digest(codec.dumps(payload)) if verdict in ("approve", "edit") else ""
        entry.answer(locked, result, result["by"], now, now + timedelta(seconds=undo), approved_digest=digest)
    run.refresh_from_db()
    return entry


def undo(run: Run, entry: LedgerEntry) -> str:
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        return LedgerEntry.objects.get(pk=entry.pk).reopen(locked, now)


def pass_lease() -> None:
    pass_time(conf.lease_seconds + 0.01)


def pass_call(limit: float = 60) -> None:
    """Until a call with that limit in seconds, a tool's own by default, is surely under way no more."""
    pass_time(limit + conf.lease_seconds + 0.5)


def pass_time(seconds: float) -> None:
    """Move the engine's clock; a test's fixture puts it back."""
    clock.AHEAD += timedelta(seconds=seconds)


def do_due() -> None:
    """All chores that are due, and what they make due."""
    while chores.are_due(clock.now()):
        chores.do_due()


def kinds(run: Run) -> list[str]:
    return list(run.checkpoints.order_by("seq").values_list("kind", flat=True))


def keys(run: Run) -> dict[str, str]:
    """Of all that it asked, in that order, with what has become of it."""
    return dict(run.entries.order_by("id").values_list("key", "status"))


def are_sound(*runs: Run) -> None:
    """They are what their trails say."""
    for run in runs:
        run.refresh_from_db()
        bad = first_bad_row(run)
        assert bad is None, bad
