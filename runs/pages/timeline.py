"""The timeline of a run: one row a step, and under it what it asked and what befell it, as bars on one axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils.translation import ngettext

from runs.models.tombstone import ERASED
from runs.pages import asking, sentences, waterfall, words
from runs.pages.story import Step, Story

if TYPE_CHECKING:
    from runs.models import Checkpoint, LedgerEntry

ICONS = {"effect": "effect", "interrupt": "user", "signal": "signal", "timer": "timer", "child": "child"}
EVENT_ICONS = {
    "lost": "kill",
    "retry": "retrying",
    "pace": "timer",
    "hand_back": "resume",
    "migrate": "retrying",
    "compensate": "undo",
    "cancel": "cancelled",
    "repair": "resume",
    "close": "cancelled",
    "fork": "child",
}
NOTE_ROOM = 30.0  # per cent that a note beside a bar needs


@dataclass(frozen=True)
class Bar:
    """`look` is step, effect, wait, doubt, gap or kill."""

    look: str
    place: waterfall.Place


@dataclass(frozen=True)
class Row:
    """A line of the timeline. `checkpoint` or `entry` says where its name leads."""

    name: str
    icon: str
    status: str
    took: str
    bars: list[Bar]
    part: bool = False
    current: bool = False
    checkpoint: int | None = None
    entry: int | None = None
    note: str = ""

    @property
    def note_at(self) -> float:
        return max((bar.place.right for bar in self.bars), default=0.0)

    @property
    def note_before(self) -> bool:
        return self.note_at > 100 - NOTE_ROOM

    @property
    def note_end(self) -> float:
        return min((bar.place.left for bar in self.bars), default=0.0)


@dataclass(frozen=True)
class Timeline:
    axis: waterfall.Axis | None
    rows: list[Row] = field(default_factory=list)
    hidden: int = 0  # earlier steps that are not shown
    live: bool = False


def lay_out(story: Story, now: datetime, steps: int) -> Timeline:
    """The latest `steps` steps."""
    shown = story.steps[-steps:]
    if not shown:
        return Timeline(None)
    axis = waterfall.axis(shown[0].begin, story.end, story.idle)
    rows = [row for step in shown for row in _rows(step, axis, story, now)]
    return Timeline(axis, rows, len(story.steps) - len(shown), live=shown[-1].end is None)


def _rows(step: Step, axis: waterfall.Axis, story: Story, now: datetime) -> Iterator[Row]:
    end = step.end or story.end
    yield Row(
        step.node,
        "step",
        "" if step.status == "completed" else words.status_word(step.status).slug,
        words.span(end - step.begin),
        [Bar("step", axis.place(step.begin, end))],
        current=step.end is None,
        checkpoint=step.checkpoint,
    )
    parts: list[tuple[datetime, int, LedgerEntry | Checkpoint]] = [
        (entry.opened_at, 0, entry) for entry in step.entries if entry.kind != "value"
    ]
    parts += [(event.at, 1, event) for event in step.events]
    for _moment, is_event, part in sorted(parts, key=lambda part: part[:2]):
        yield _event(part, axis, story, end) if is_event else _entry(part, axis, story)


def _entry(entry: LedgerEntry, axis: waterfall.Axis, story: Story) -> Row:
    end = entry.answered_at or story.end
    waits = entry.kind in asking.WAITS
    if waits:
        look = "wait"
    else:
        look = "doubt" if entry.status == "in_doubt" else "effect"
    answer = asking.answered(entry) if waits and entry.answered_at else ""
    name = entry.name
    if waits:
        name = asking.started(entry) if entry.kind == "child" else asking.asked(entry)
    tries = ngettext("%(many)s try", "%(many)s tries", entry.attempts) % {"many": entry.attempts}
    return Row(
        name or ERASED,
        ICONS.get(entry.kind, "value"),
        words.status_word(
            "waiting" if waits and entry.status in ("open", "done") else asking.shown(entry)
        ).slug,
        words.span(end - entry.opened_at) if end > entry.opened_at else "",
        [Bar(look, axis.place(entry.opened_at, end))],
        part=True,
        entry=entry.pk,
        note=answer or (tries if entry.attempts > 1 else ""),
    )


def _event(event: Checkpoint, axis: waterfall.Axis, story: Story, end: datetime) -> Row:
    rest = next((later for begin, later in story.idle if begin == event.at), None)
    bars = [Bar("gap", axis.place(event.at, rest))] if rest is not None else []
    if event.kind == "lost":
        bars = [Bar("kill", axis.place(event.at, event.at)), *bars]
    elif not bars:
        bars = [Bar("effect", axis.place(event.at, min(event.at + timedelta(milliseconds=1), end)))]
    status = {
        "lost": "failed",
        "retry": "retrying",
        "pace": "waiting",
        "fail": "failed",
        "cancel": "cancelled",
    }
    return Row(
        sentences.happened(event),
        EVENT_ICONS.get(event.kind, "failed"),
        status.get(event.kind, "created"),
        words.span(rest - event.at) if rest is not None else "",
        bars,
        part=True,
        checkpoint=event.seq,
    )
