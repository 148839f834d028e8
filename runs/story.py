"""What happened in a run, read from its checkpoints and entries: steps, and in each what it asked and what befell it.

Pure reading: rows in, steps out; no query, no clock (the moment is an argument).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from runs.core.graph import END

if TYPE_CHECKING:
    from runs.models import Checkpoint, LedgerEntry, Run

RESTS = frozenset({"wait", "retry", "hand_back"})  # after these nobody works until the next checkpoint
TOLD = frozenset({"claim", "lost", "retry", "hand_back", "fail", "cancel", "repair"})  # what befell a step


@dataclass
class Step:
    """One node's execution, from the commit before it to its own; `end` is None while it is under way.

    `checkpoint` is the seq of its own commit, or of the latest one so far. `status` is completed, or the run's.
    """

    number: int
    node: str
    begin: datetime
    end: datetime | None = None
    status: str = ""
    checkpoint: int = 0
    entries: list[LedgerEntry] = field(default_factory=list)
    events: list[Checkpoint] = field(default_factory=list)

    @property
    def retries(self) -> int:
        return sum(event.kind == "retry" for event in self.events)

    @property
    def kills(self) -> int:
        return sum(event.kind == "claim" for event in self.events)


@dataclass
class Visit:
    """What a run did at one node: how often, and its latest step there."""

    times: int
    latest: Step


@dataclass
class Story:
    steps: list[Step]
    idle: list[tuple[datetime, datetime]]
    begin: datetime
    end: datetime

    @property
    def taken(self) -> set[tuple[str, str]]:
        """The edges that were taken."""
        edges = {
            (one.node, following.node) for one, following in zip(self.steps, self.steps[1:], strict=False)
        }
        if self.steps and self.steps[-1].status == "completed":
            edges.add((self.steps[-1].node, END))
        return edges

    @property
    def visits(self) -> dict[str, Visit]:
        found: dict[str, Visit] = {}
        for step in self.steps:
            times = found[step.node].times if step.node in found else 0
            found[step.node] = Visit(times + 1, step)
        return found


def tell(run: Run, checkpoints: Sequence[Checkpoint], entries: Sequence[LedgerEntry], now: datetime) -> Story:
    """The steps that `checkpoints` (a run's latest, in order, without gaps) tell of, the last one perhaps open."""
    if not checkpoints:
        return Story([], [], run.created_at, max(now, run.created_at))
    first = checkpoints[0]
    at = Step(first.step + 1, first.node, first.at, checkpoint=first.seq)
    steps, idle = [at], []
    before = first
    for checkpoint in checkpoints[1:]:
        if before.kind in RESTS:
            idle.append((before.at, checkpoint.at))
        at.checkpoint = checkpoint.seq
        if checkpoint.step > before.step:
            at.end, at.status = checkpoint.at, "completed"
            if checkpoint.kind != "complete":
                at = Step(checkpoint.step + 1, checkpoint.node, checkpoint.at, checkpoint=checkpoint.seq)
                steps.append(at)
        elif checkpoint.kind in TOLD:
            at.events.append(checkpoint)
        before = checkpoint
    end = run.finished_at if run.ended and run.finished_at else now
    if before.kind in RESTS and not run.ended:
        idle.append((before.at, end))
    _close(run, at, before)
    _share_out(steps, entries)
    return Story(steps, idle, first.at, max(end, before.at))


def _close(run: Run, at: Step, last: Checkpoint) -> None:
    if at.status == "completed":
        return
    at.status = run.status
    if run.ended:
        at.end = run.finished_at or last.at


def _share_out(steps: Sequence[Step], entries: Sequence[LedgerEntry]) -> None:
    by_number = {step.number: step for step in steps}
    for entry in sorted(entries, key=lambda entry: (entry.opened_at, entry.pk)):
        if entry.step in by_number:
            by_number[entry.step].entries.append(entry)
    for step in steps:
        if step.status != "completed" and any(entry.status == "in_doubt" for entry in step.entries):
            step.status = "in_doubt"
