"""What the page of one run shows: its rows, read once, in the shape that the templates want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from runs.conf import conf
from runs.core.errors import DurableError
from runs.core.spending import NAME
from runs.engine.holding import Held, held, wants_worker
from runs.engine.keeping import hold
from runs.engine.state import StoredState
from runs.models import (
    Archival,
    Blob,
    Checkpoint,
    GraphStop,
    GraphVersion,
    LedgerEntry,
    Remark,
    Run,
    Tombstone,
)
from runs.pages import asking, elsewhere, plain, sentences, undoing, words
from runs.pages.cost import spent
from runs.pages.differences import ABSENT
from runs.pages.lines import Line, lines
from runs.pages.mailbox import Mail, mailbox
from runs.pages.pictures import Picture, draw
from runs.pages.rows import HEAVY, refer, shown, title
from runs.pages.story import Story, tell
from runs.pages.timeline import Timeline, lay_out
from runs.unstorable import fault

CHECKPOINTS_SHOWN = 400
ENTRIES_SHOWN = 300
STEPS_SHOWN = 40


@dataclass(frozen=True)
class CheckpointView:
    """One checkpoint: the state there, and what differs from another one (the one before, unless asked otherwise)."""

    checkpoint: Checkpoint
    says: str
    actor: str
    state: str = ""
    against: int | None = None
    lines: Sequence[Line] = ()
    weight: str = ""
    problem: str = ""  # why the state cannot be read


@dataclass(frozen=True)
class EntryView:
    """One ledger entry with what it asked and got, as text."""

    entry: LedgerEntry
    asked: str
    answer: str
    request: str
    result: str
    took: str
    by: str
    remarks: list[Any]
    open: bool
    page: str = ""  # where it is decided
    undone_by: LedgerEntry | None = None

    @property
    def shown(self) -> str:
        """The status that people see: a wait that timed out has not failed."""
        return asking.shown(self.entry)


class RunPage:
    """Everything below one run. Each part is read when a template asks for it, once."""

    def __init__(
        self,
        run: Run,
        now: datetime,
        *,
        at: int | None = None,
        against: int | None = None,
        entry: int | None = None,
    ) -> None:
        self.run, self.now = run, now
        self.at, self.against, self.entry = at, against, entry

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        """The latest ones, in order, without bodies."""
        rows = self.run.checkpoints.order_by("-seq").defer(*HEAVY)[:CHECKPOINTS_SHOWN]
        return list(rows)[::-1]

    @cached_property
    def entries(self) -> list[LedgerEntry]:
        """The latest ones, newest first, with those that they refer to."""
        found = list(self.run.entries.order_by("-step", "-pk")[:ENTRIES_SHOWN])
        refer(found, "decided_by", "compensates", among=found)
        return found

    @cached_property
    def _remarks(self) -> dict[int | None, list[Remark]]:
        """Of each entry that is shown, in order."""
        found: dict[int | None, list[Remark]] = {}
        shown = [entry.pk for entry in self.entries]
        for remark in self.run.remarks.filter(entry__in=shown).order_by("pk") if shown else ():
            found.setdefault(remark.entry_id, []).append(remark)
        return found

    @cached_property
    def story(self) -> Story:
        return tell(self.run, self.checkpoints, self.entries, self.now)

    @cached_property
    def sentence(self) -> sentences.Sentence:
        current = [entry for entry in self.entries if entry.step == self.run.step + 1]
        pressing = [entry for entry in self.entries if entry.status == "in_doubt"]
        held = self.unserved if wants_worker(self.run, self.now) else None
        said = sentences.about(self.run, [*pressing, *current], self.last, self.now, held)
        return undoing.told(self.run, said, self.undoing)

    @cached_property
    def undoing(self) -> undoing.Progress | None:
        """How far what it did is undone; None for a run that undoes nothing."""
        begun = self.run.ending or any(entry.compensates_id is not None for entry in self.entries)
        return undoing.Progress.of(self.run) if begun else None

    @cached_property
    def compensable(self) -> int:
        """How many writes a cancel could undo; 0 where it would undo nothing or does so already."""
        return 0 if self.run.ended or self.run.ending else self.run.entries.compensable().count()

    @cached_property
    def unserved(self) -> Held | None:
        """Why no worker takes the run, or would take it once it is due."""
        run = self.run
        if run.ended or run.leased_by is not None:
            return None
        return held([(run.graph, run.version)], self.now).get((run.graph, run.version))

    @cached_property
    def stop(self) -> GraphStop | None:
        """The stop of its graph, if that keeps a worker from taking the run."""
        if not wants_worker(self.run, self.now):
            return None
        return GraphStop.objects.filter(graph=self.run.graph).first()

    @property
    def tombstone(self) -> Tombstone | None:
        """Of a run that was erased, or is being erased."""
        return getattr(self.run, "tombstone", None)

    @property
    def archival(self) -> Archival | None:
        """Of a run that is archived, or on its way there."""
        return getattr(self.run, "archival", None)

    @cached_property
    def hold(self) -> Remark | None:
        """Who keeps its family from being erased."""
        return hold(self.run)

    @property
    def last(self) -> Checkpoint | None:
        return self.checkpoints[-1] if self.checkpoints else None

    @property
    def lifetime(self) -> timedelta:
        return (self.run.finished_at or self.now) - self.run.created_at

    @property
    def current_step(self) -> int:
        """The step in progress; of an ended run, the last one that was."""
        return self.story.steps[-1].number if self.story.steps else self.run.step + 1

    @property
    def worker(self) -> str:
        return plain.actor(self.run.leased_by or "")

    @property
    def heard_at(self) -> datetime | None:
        """When the worker last said that it lives: each word of it holds the lease for so long."""
        run = self.run
        return run.wake_at - conf.lease if run.leased_by is not None and run.wake_at is not None else None

    @property
    def count(self) -> int:
        """How many checkpoints the run has; they are numbered from 0."""
        return self.run.seq + 1

    @property
    def tries(self) -> int:
        """Which try of the step this is; an ended run has none under way."""
        return 0 if self.run.ended else self.run.attempt + 1

    @property
    def earlier(self) -> int:
        """How many checkpoints are not shown."""
        return self.checkpoints[0].seq if self.checkpoints else 0

    @cached_property
    def picture(self) -> Picture | None:
        version = GraphVersion.objects.filter(graph=self.run.graph, version=self.run.version).first()
        return draw(version.shape, self.run, self.story, self.now) if version is not None else None

    @cached_property
    def timeline(self) -> Timeline:
        return lay_out(self.story, self.now, steps=STEPS_SHOWN)

    @cached_property
    def labels(self) -> list[tuple[str, Any]]:
        labels = plain.stored(self.run.labels)
        return [pair for pair in labels.items() if pair[0] != "title"] if isinstance(labels, dict) else []

    @cached_property
    def spent(self) -> list[str]:
        """What it cost so far, in words; empty for a run that tells of no cost. Reads rows only where not all are."""
        entries = self.entries
        if len(entries) == ENTRIES_SHOWN:
            entries = self.run.entries.filter(kind="value", name=NAME)
        return spent(entries).lines

    @property
    def title(self) -> str:
        return title(self.run)

    @property
    def shown(self) -> str:
        return shown(self.run)

    @cached_property
    def moments(self) -> list[tuple[Checkpoint, str]]:
        """The list of checkpoints, newest first, each with its kind in a word."""
        return [(checkpoint, sentences.kind(checkpoint)) for checkpoint in reversed(self.checkpoints)]

    @cached_property
    def checkpoint(self) -> CheckpointView | None:
        """The one asked for, or the latest. None when the run has none of that number."""
        seq = self.at if self.at is not None else (self.last.seq if self.last else None)
        row = self.run.checkpoints.filter(seq=seq).first() if seq is not None else None
        if row is None:
            return None
        against = self.against if self.against is not None else row.seq - 1
        try:
            state = StoredState.load(self.run.pk, row.seq).tree
            other = StoredState.load(self.run.pk, against).tree if 0 <= against <= self.run.seq else ABSENT
        except DurableError as error:
            return CheckpointView(row, sentences.kind(row), plain.actor(row.actor), problem=str(fault(error)))
        return CheckpointView(
            row,
            sentences.kind(row),
            plain.actor(row.actor),
            state=words.pretty(state),
            against=against if other is not ABSENT else None,
            lines=lines(other, state) if other is not ABSENT else [],
            weight=words.size(len(row.body.encode())),
        )

    @cached_property
    def _undone_by(self) -> dict[int, LedgerEntry]:
        return {entry.compensates_id: entry for entry in self.entries if entry.compensates_id is not None}

    @cached_property
    def _elsewhere(self) -> dict[int, str]:
        return elsewhere.addresses([entry for entry in self.entries if entry.kind == "interrupt"])

    @property
    def questions(self) -> list[EntryView]:
        """Those that are open and have a page to answer them on."""
        return [view for view in self.ledger if view.entry.status == "open" and view.page]

    @cached_property
    def ledger(self) -> list[EntryView]:
        return [self._entry(entry) for entry in self.entries]

    @cached_property
    def mailbox(self) -> list[Mail]:
        return mailbox(self.run, self.entries)

    @property
    def undelivered(self) -> bool:
        return any(mail.status == "undelivered" for mail in self.mailbox)

    @cached_property
    def blobs(self) -> list[Blob]:
        return list(Blob.objects.filter(uses__run=self.run).order_by("touched_at"))

    @property
    def doubtful(self) -> list[EntryView]:
        return [view for view in self.ledger if view.entry.status == "in_doubt"]

    def _entry(self, entry: LedgerEntry) -> EntryView:
        end = entry.answered_at or (self.now if entry.status in ("open", "in_doubt") else None)
        if end == entry.opened_at:
            end = None  # recorded without an intent: how long the call took is not known
        return EntryView(
            entry,
            asking.asked(entry),
            asking.answered(entry),
            words.pretty(plain.stored(entry.request)),
            words.pretty(plain.stored(entry.result)) if entry.result is not None else "",
            words.span(end - entry.opened_at) if end is not None else "",
            plain.actor(entry.answered_by),
            self._remarks.get(entry.pk, []),
            open=entry.pk == self.entry,
            page=self._elsewhere.get(entry.pk, ""),
            undone_by=self._undone_by.get(entry.pk),
        )
