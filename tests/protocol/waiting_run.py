"""What the model of a waiting run is made of, and what is pure about it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import cache
from typing import NamedTuple

from tests.protocol.exploring import ahead


class Run(NamedTuple):
    status: str
    leased: int | None = None
    wake: int | None = None
    end: int = 0  # ghost: when the last granted lease ends


class Entry(NamedTuple):
    """- not asked, o open, q a call that is under way until it is due, d decided, x expired, c closed."""

    status: str = "-"
    due: int | None = None
    effective: int | None = None
    taken: bool = False
    seen: bool = False  # ghost: a node has acted on it
    undone: int = 0  # ghost: how often
    step: int = 0  # ghost: of which step


class Worker(NamedTuple):
    at: str = "idle"
    fresh: bool = False  # its fence is the run's
    differs: bool = False  # the run's answers are not the number that it read
    view: tuple[Entry, Entry] | None = None  # the entries as its claim read them
    woken: bool = False  # ghost: it claimed a run that waited
    wake: int | None = None  # what it is about to park with
    beating: int = 0  # 1: a heartbeat with the present fence is under way, 2: with an older one


class World(NamedTuple):
    now: int
    run: Run
    a: Entry
    b: Entry
    workers: tuple[Worker, Worker]
    left: tuple[int, ...]
    bad: str = ""


def next_look(a: Entry, b: Entry, now: int, broken: Collection[str] = ()) -> int | None:
    """The earliest deadline of what is missing; only if all of that is answered, when the last becomes effective."""
    missing = [e for e in (a, b) if not is_ready(e, now)]
    if not missing:
        return now
    unanswered = [e for e in missing if e.status in "oq"]
    moments = [e.due for e in unanswered if e.due is not None]
    if "any_deadline" in broken:
        moments += [e.due for e in (a, b) if e.due is not None]
    if "over_counts" in broken:
        moments += [e.due for e in (a, b) if e.status == "q"]
    if not unanswered:
        moments.append(max(e.effective for e in missing))
    return min(moments, default=None)


def is_ready(e: Entry, now: int) -> bool:
    if e.status == "q":
        return e.due <= now
    return e.status != "o" and (e.effective is None or e.effective <= now)


@cache  # the same few are asked for in nearly every state
def entry_key(e: Entry, now: int) -> Hashable:
    if e.taken or e.status in "xc":
        return e._replace(due=None, effective=None if e.effective is None else 0)
    return e._replace(due=ahead(e.due, now), effective=ahead(e.effective, now))
