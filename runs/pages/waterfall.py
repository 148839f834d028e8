"""Time from left to right, in per cent of a lane. Pure: moments in, places out.

Time in which nobody worked (a wait for a person, a long back-off) is folded: it gets a fixed, narrow strip, and the
strip says how long it was. Everything else keeps its proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

FOLD_WIDTH = 12.0
FOLDS_AT_MOST = 48.0  # per cent of the lane, all strips together
FOLD_FROM = timedelta(seconds=5)
FOLD_SHARE = 0.2  # of the time worked; a shorter wait is drawn to scale
THINNEST = 0.35


@dataclass(frozen=True)
class Segment:
    """A piece of the axis: from when to when, and where it lies, in per cent."""

    begin: datetime
    end: datetime
    left: float
    width: float
    folded: bool

    @property
    def length(self) -> timedelta:
        return self.end - self.begin

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def right(self) -> float:
        return self.left + self.width


@dataclass(frozen=True)
class Place:
    """Where a bar lies in its lane, in per cent."""

    left: float
    width: float

    @property
    def right(self) -> float:
        return self.left + self.width


@dataclass(frozen=True)
class Axis:
    segments: tuple[Segment, ...]

    @property
    def folds(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.folded]

    @property
    def begin(self) -> datetime:
        return self.segments[0].begin

    @property
    def end(self) -> datetime:
        return self.segments[-1].end

    def at(self, moment: datetime) -> float:
        """Where a moment lies; before the axis 0, after it 100."""
        for segment in self.segments:
            if moment <= segment.end:
                inside = (
                    (max(moment, segment.begin) - segment.begin) / segment.length if segment.length else 0.0
                )
                return round(segment.left + segment.width * inside, 2)
        return 100.0

    def place(self, begin: datetime, end: datetime) -> Place:
        """A bar that is never too thin to be seen, and never leaves the lane."""
        left, right = self.at(begin), self.at(end)
        width = max(right - left, THINNEST)
        return Place(round(min(left, 100 - width), 2), round(width, 2))

    def ticks(self, apart: float = 13.0) -> list[tuple[float, datetime]]:
        """Moments to write at the axis: both ends and the edges of folds, none closer than `apart` per cent.

        Each is written to the right of its place, but the last one, which is the page's own, to the left of it.
        """
        edges = [(self.segments[0].left, self.begin)]
        edges += [(fold.right, fold.end) for fold in self.folds if fold.right < 100]
        kept: list[tuple[float, datetime]] = []
        for left, moment in edges:
            if (not kept or left - kept[-1][0] >= apart) and 100 - left >= 2 * apart:
                kept.append((left, moment))
        return kept


def axis(begin: datetime, end: datetime, idle: Iterable[tuple[datetime, datetime]]) -> Axis:
    """An axis from `begin` to `end` in which the long ones of the `idle` spans are folded."""
    end = max(end, begin + timedelta(milliseconds=1))
    gaps = _merged([(max(a, begin), min(b, end)) for a, b in idle if min(b, end) > max(a, begin)])
    worked = (end - begin) - sum((b - a for a, b in gaps), timedelta(0))
    folded = [gap for gap in gaps if gap[1] - gap[0] > max(FOLD_FROM, worked * FOLD_SHARE)]
    pieces: list[tuple[datetime, datetime, bool]] = []
    at = begin
    for start, stop in folded:
        if start > at:
            pieces.append((at, start, False))
        pieces.append((start, stop, True))
        at = stop
    if at < end:
        pieces.append((at, end, False))
    return Axis(_placed(pieces, len(folded)))


def _placed(pieces: Sequence[tuple[datetime, datetime, bool]], folds: int) -> tuple[Segment, ...]:
    drawn = sum((stop - start for start, stop, fold in pieces if not fold), timedelta(0))
    fold_width = min(FOLD_WIDTH, FOLDS_AT_MOST / folds) if folds else 0.0
    if not drawn:
        fold_width = 100.0 / folds
    rest = 100.0 - fold_width * folds
    segments, left = [], 0.0
    for start, stop, fold in pieces:
        width = fold_width if fold else rest * ((stop - start) / drawn)
        segments.append(Segment(start, stop, round(left, 2), round(width, 2), fold))
        left += width
    return tuple(segments)


def _merged(spans: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    merged: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
