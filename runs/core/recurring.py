"""When runs start by themselves: a cron expression in a time zone, read as moments. What is now is an argument."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any  # inputs are the author's
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from runs.core.errors import GraphError
from runs.core.words import is_legible

if TYPE_CHECKING:
    from runs.core.graph import Graph

FIELDS = 5  # minute, hour, day of the month, month, day of the week
LONGEST_CRON = LONGEST_NAME = 100
CATCH_UP = ("latest", "all", "none")  # what passed slots owe: one run, some of them a run each, or nothing
LATE = timedelta(minutes=5)  # with "none": a slot that was passed by longer is left out
MOST_AT_ONCE = 1_000
FIRST_LOOK = timedelta(hours=1)
SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Slots: the moments that `cron` names in the time of `zone`, as Debian's cron takes them over a change of clocks.

    With minute and hour both named, a slot that the clocks skip comes as soon as they go on, and one that they repeat
    comes the first time: one a day, each day. With a star in minute or hour it is an interval of real time: it comes
    whenever the clocks show it, twice or not at all.
    """

    cron: str
    zone: str

    def after(self, moment: datetime) -> datetime | None:
        """The first slot later than `moment`, in UTC; None if there is none in fifty years."""
        return next(self._from(moment), None)

    def between(self, after: datetime, until: datetime, most: int) -> list[datetime]:
        """The latest `most` slots that are later than `after` and not later than `until`, in order, in UTC."""
        look = FIRST_LOOK
        while True:  # from a moment ever longer ago, so that years of minutes are not all counted
            since = max(after, until - look)
            found = deque(takewhile(lambda slot: slot <= until, self._from(since)), maxlen=most)
            if len(found) == most or since == after:
                return list(found)
            look *= 4

    def local(self, slot: datetime) -> datetime:
        return slot.astimezone(ZoneInfo(self.zone))

    def explained(self) -> str:
        """In English, for cronsim speaks no other language: At 02:30 every day."""
        return CronSim(self.cron, SOME_DAY).explain()

    def _from(self, moment: datetime) -> Iterator[datetime]:
        latest = moment
        minute, hour, *_ = self.cron.split()
        interval = minute.startswith("*") or hour.startswith("*")
        for slot in self._interval(moment) if interval else self._named(moment):
            if slot > latest:  # an hour that the clocks repeat is read twice
                latest = slot
                yield slot

    def _named(self, moment: datetime) -> Iterator[datetime]:
        for found in CronSim(self.cron, self.local(moment)):
            yield found.astimezone(UTC)

    def _interval(self, moment: datetime) -> Iterator[datetime]:
        """Each moment at which the clocks show what is named: they may show it twice, or not at all.

        cronsim reads the faces of a clock without a zone: in one it goes on by whole real hours, and from midnights
        that there may not be, so that a change of half an hour, or at midnight, moves what follows.
        """
        zone, local = ZoneInfo(self.zone), self.local(moment)
        back = max(_gained(local, zone) if local.fold == 0 else timedelta(0), timedelta(0))
        again: deque[datetime] = deque()  # the second times of what is shown twice, until their turn
        for face in CronSim(self.cron, local.replace(tzinfo=None, fold=0) - back):
            gained = _gained(face, zone)
            if gained < timedelta(0):
                continue  # never shown
            first = face.replace(tzinfo=zone).astimezone(UTC)
            while again and again[0] < first:
                yield again.popleft()
            yield first
            if gained:
                again.append(first + gained)
        yield from again


def _gained(face: datetime, zone: ZoneInfo) -> timedelta:
    """How much later the clocks show `face` a second time: nothing if they show it once, less if never."""
    first, second = (face.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0) for fold in (0, 1))
    return first - second


def faults(
    cron: str, zone: str, name: str, catch_up: str = CATCH_UP[0], most: int = 1
) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it)."""
    if not is_legible(name) or len(name) > LONGEST_NAME or ":" in name:
        yield "name", f"Give a name of 1 to {LONGEST_NAME} characters that can be printed, without a colon."
    try:
        if len(cron) > LONGEST_CRON or len(cron.split()) != FIELDS:
            raise CronSimError("write five fields: minute, hour, day of the month, month, day of the week")
        CronSim(cron, SOME_DAY)
    except (CronSimError, ValueError, TypeError, AssertionError) as error:
        yield "cron", f"{cron[:LONGEST_CRON]!r} is no cron expression ({error}). An example: 30 2 * * 1-5."
    else:
        if Recurrence(cron, "UTC").after(SOME_DAY) is None:
            yield "cron", f"{cron!r} never comes."
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        yield (
            "zone",
            f"{zone[:LONGEST_NAME]!r} is no time zone that is known here. An example: Europe/Berlin.",
        )
    if catch_up not in CATCH_UP:
        yield "catch_up", f"{catch_up!r}: choose one of {', '.join(CATCH_UP)}."
    if type(most) is not int or not 1 <= most <= MOST_AT_ONCE:
        yield "most", f"Give a number from 1 to {MOST_AT_ONCE}."


def owed(
    recurrence: Recurrence, after: datetime, now: datetime, catch_up: str, most: int, tried: bool = False
) -> list[datetime]:
    """The slots since `after` that are to have a run now, in order; `tried`: the first of them could not be started."""
    found = recurrence.between(after, now, most if catch_up == "all" else 1)
    if catch_up == "none" and found and now - found[-1] > LATE:
        # the one that was tried was in time, and stays owed until another comes
        return found if tried and found[-1] == recurrence.after(after) else []
    return found


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule that an author declared: `fn(slot)` gives the input of the run that the slot starts."""

    name: str
    recurrence: Recurrence
    catch_up: str
    most: int
    fn: Callable[[datetime], Any]


def declared(
    graph: Graph, cron: str, zone: str, name: str, catch_up: str, most: int, fn: Callable[[datetime], Any]
) -> Every:
    """Checks what an author wrote. Raises GraphError naming file and function."""
    if not inspect.isfunction(fn):
        raise GraphError(f"graph {graph.name!r}: {fn!r}: a schedule is a plain function of exactly (slot)")
    where = f"{fn.__code__.co_filename}, {fn.__name__!r}"
    for field, fault in faults(cron, zone, name, catch_up, most):
        raise GraphError(f"{where}: {'tz' if field == 'zone' else field}: {fault}")
    if name in graph.schedules:
        raise GraphError(f"{where}: graph {graph.name!r} has a schedule {name!r} already")
    if inspect.iscoroutinefunction(fn) or len(inspect.signature(fn).parameters) != 1:
        raise GraphError(f"{where}: a schedule is a plain function of exactly (slot)")
    return Every(name, Recurrence(" ".join(cron.split()), zone), catch_up, most, fn)
