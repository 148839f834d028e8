"""What happened in a run, read from its checkpoints and entries: steps, and in each what it asked and what befell it.

Pure reading: rows in, steps out; no query, no clock (the moment is an argument).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from runs.core.graph import END

if TYPE_CHECKING:
    from runs.models import Checkpoint, LedgerEntry, Run

COMMITS = frozenset({"step", "complete"})
LEAVE = frozenset({"migrate", "repair"})  # where they lead to another node
RESTS = frozenset(
    {
        "start",
        "wait",
        "retry",
        "pace",
        "lost",
        "hand_back",
        "compensate",
        "settle",
        "fail",
        "cancel",
        "repair",
        "close",
        "fork",
    }  # fmt: skip
)  # nobody works until the next checkpoint
TOLD = frozenset(
    {
        "lost",
        "retry",
        "pace",
        "hand_back",
        "fail",
        "cancel",
        "repair",
        "migrate",
        "compensate",
        "settle",
        "close",
        "fork",
    }  # fmt: skip
)  # what befell it


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
    def kills(self) -> int:
        return sum(event.kind == "lost" for event in self.events)


@dataclass
class Visit:
    """What a run did at one node: how often, how long before its latest step there, and that step."""

    times: int
    before: timedelta
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
            times, took = 0, timedelta()
            if (known := found.get(step.node)) is not None:
                times, took = known.times, known.before + (known.latest.end - known.latest.begin)
            found[step.node] = Visit(times + 1, took, step)
        return found


def tell(run: Run, checkpoints: Sequence[Checkpoint], entries: Sequence[LedgerEntry], now: datetime) -> Story:
    """The steps that `checkpoints` (a run's latest, in order, without gaps) tell of, the last one perhaps open.

    A checkpoint of kind step or complete names the node that committed; every other one the node in progress.
    """
    if not checkpoints:
        return Story([], [], run.created_at, max(now, run.created_at))
    first, steps, idle = checkpoints[0], [], []
    at: Step | None = None
    before: Checkpoint | None = None
    begin = first.at
    for checkpoint in checkpoints:
        if before is not None and before.kind in RESTS:
            idle.append((before.at, checkpoint.at))
        commits = checkpoint.kind in COMMITS
        left = before is None or checkpoint.step > before.step
        leaves = commits or checkpoint.kind in LEAVE and left
        if at is None and not (leaves and before is None):
            at = Step(checkpoint.step + (not leaves), checkpoint.node, begin)
            steps.append(at)
        if at is not None:
            at.checkpoint = checkpoint.seq
            if commits:
                at.end, at.status = checkpoint.at, "completed"
            elif checkpoint.kind in TOLD:
                at.events.append(checkpoint)
            if leaves and not commits:
                at.end, at.status = checkpoint.at, "superseded"
        if leaves:
            at, begin = None, checkpoint.at
        before = checkpoint
    last = checkpoints[-1]
    if at is None and not run.ended:
        at = Step(run.step + 1, run.node, begin, checkpoint=last.seq)
        steps.append(at)
    end = run.finished_at if run.ended and run.finished_at else now
    if last.kind in RESTS and not run.ended:
        idle.append((last.at, end))
    if at is not None:
        _close(run, at, last)
    _share_out(steps, entries)
    return Story(steps, idle, first.at, max(end, last.at))


def _close(run: Run, at: Step, last: Checkpoint) -> None:
    at.status = run.status
    if run.ended:
        at.end = run.finished_at or last.at


def _share_out(steps: Sequence[Step], entries: Sequence[LedgerEntry]) -> None:
    by_number = {step.number: step for step in steps}
    for entry in sorted(entries, key=lambda entry: entry.pk):
        if entry.step in by_number:
            by_number[entry.step].entries.append(entry)
    for step in steps:
        if step.status != "completed" and any(entry.status == "in_doubt" for entry in step.entries):
            step.status = "in_doubt"
