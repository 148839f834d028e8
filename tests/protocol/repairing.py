"""A run of one write that fails, is cancelled, settled and repaired while workers come late (runs/engine/repairing.py).

The write goes out under one key until a repair puts it aside, then under the next. What became of each is what the
provider has counted. A worker may stop for any time between its intent, its call and its record; whoever settles waits
until such a call is under way no more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

ENDED = ("failed", "cancelled")
PAST = ("aside", "closed")


class Worker(NamedTuple):
    at: str = "idle"  # idle, claimed, opened, called, refused
    key: int = 0  # of the write that it is about
    fresh: bool = False  # its fence is the run's
    state: int = 0  # the one it was given: how many repairs lie before it


class World(NamedTuple):
    status: str  # due, leased, waits, failed, cancelled, undone, completed
    entries: tuple[str, ...]  # by key: "-", open, done, failed, doubt, and then closed, aside or undone
    made: tuple[int, ...]  # what the provider has done under each key
    workers: tuple[Worker, ...]
    left: tuple[int, ...]
    state: int = 0  # how many repairs have given it another one
    mended: bool = False  # nothing has failed since the repair
    half: bool = False  # a repair of two commits stands between them
    bad: str = ""


class Repairing:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", workers: int = 2, **budgets: int) -> None:
        self.broken, self.workers = frozenset(broken.split()), workers
        defaults = {"crash": 1, "expire": 1, "refuse": 1, "cancel": 1, "undo": 1, "repair": 2}
        self.budgets = Budgets(**(defaults | budgets))
        self.keys = defaults["repair"] + 1

    def start(self) -> World:
        none = ("-",) * self.keys
        return World("due", none, (0,) * self.keys, (Worker(),) * self.workers, self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s

    def show(self, s: World) -> str:
        workers = " ".join(one.at + ("" if one.fresh else "'") for one in s.workers)
        return f"{s.status} {','.join(s.entries)} made {sum(s.made)}; {workers}"

    def fault(self, s: World) -> str:
        if sum(s.made) > 1:
            return "the write was made twice"
        if s.status == "completed" and "undone" in s.entries:
            return "a step builds on what was undone"
        if s.status == "completed" and sum(s.made) != 1:
            return "completed without its write"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        if s.status == "leased" and (left := self.budgets.spend(s.left, "expire")) is not None:
            yield "the lease ends", s._replace(status="due", left=left)
        for who, worker in enumerate(s.workers):
            yield from self._work(s, who, worker)
            if worker.at != "idle" and (left := self.budgets.spend(s.left, "crash")) is not None:
                yield f"worker {who} is killed", self._put(s, who, Worker())._replace(left=left)
        yield from self._people(s)

    # -- workers

    def _work(self, s: World, who: int, worker: Worker) -> Iterator[tuple[str, World]]:
        holds = worker.fresh and s.status in ("due", "leased")  # both are running
        match worker.at:
            case "idle" if s.status == "due":
                after = self._stale(s)._replace(status="leased")
                yield f"worker {who} claims", self._put(after, who, Worker("claimed", 0, True, s.state))
            case "claimed" if holds:
                yield from self._execute(s, who, worker)
            case "opened":
                called = self._put(s, who, worker._replace(at="called"))
                yield f"worker {who} calls", called._replace(made=_with(s.made, worker.key, "+"))
                if (left := self.budgets.spend(s.left, "refuse")) is not None:
                    refused = self._put(s, who, worker._replace(at="refused"))
                    yield f"worker {who} calls, and is refused", refused._replace(left=left)
            case "called" if holds and s.entries[worker.key] in ("open", "doubt"):
                yield f"worker {who} records", self._recorded(s, who, worker, "done")
            case "refused" if holds and s.entries[worker.key] in ("open", "doubt"):
                after = self._recorded(s, who, worker, "failed")
                yield f"worker {who} records the refusal", after._replace(mended=False)
            case "claimed" | "called" | "refused":
                yield f"worker {who} finds its fence gone", self._put(s, who, Worker())

    def _execute(self, s: World, who: int, worker: Worker) -> Iterator[tuple[str, World]]:
        """The node from its top: what its one write came to, under the key that is asked for now."""
        key = next((key for key, entry in enumerate(s.entries) if entry not in PAST), None)
        if key is None:
            return
        rests = self._put(s, who, Worker())
        match s.entries[key]:
            case "-":
                opened = self._put(s, who, worker._replace(at="opened", key=key))
                yield (
                    f"worker {who} intends",
                    opened._replace(
                        entries=_with(s.entries, key, "open"),
                        bad="" if worker.state == s.state else "what a repair has replaced is sent",
                    ),
                )
            case "open" | "doubt":
                yield (
                    f"worker {who} asks what became of it",
                    rests._replace(status="waits", entries=_with(s.entries, key, "doubt")),
                )
            case "done" | "undone":
                yield f"worker {who} commits the step", rests._replace(status="completed")
            case "failed":
                bad = "stopped by what had failed before its repair" if s.mended else ""
                yield f"worker {who} fails the run", rests._replace(status="failed", bad=bad)

    def _recorded(self, s: World, who: int, worker: Worker, entry: str) -> World:
        after = self._put(s, who, worker._replace(at="claimed"))
        return after._replace(entries=_with(s.entries, worker.key, entry))

    # -- people

    def _people(self, s: World) -> Iterator[tuple[str, World]]:
        if s.status in ("due", "leased", "waits") and (left := self.budgets.spend(s.left, "cancel")):
            closed = tuple("doubt" if entry == "open" else entry for entry in s.entries)
            yield "it is cancelled", self._fenced(s)._replace(status="cancelled", entries=closed, left=left)
        if "doubt" in s.entries and s.status in ("waits", *ENDED):
            key = s.entries.index("doubt")
            if "settled_early" in self.broken or not self._under_way(s, key):
                happened = s.made[key] > 0
                live = "-" if s.status == "waits" else "closed"
                entries = _with(s.entries, key, "done" if happened else live)
                status = "due" if s.status == "waits" else s.status
                yield (
                    f"settled: {'it happened' if happened else 'it did not'}",
                    s._replace(entries=entries, status=status),
                )
        if s.status in ENDED and "doubt" not in s.entries and (left := self.budgets.spend(s.left, "undo")):
            entries = tuple("undone" if entry == "done" else entry for entry in s.entries)
            yield "it is undone", s._replace(status="undone", entries=entries, left=left)
        yield from self._repair(s)

    def _repair(self, s: World) -> Iterator[tuple[str, World]]:
        if s.half:
            yield "then what failed is put aside", s._replace(half=False, entries=self._aside(s))
        may = s.status in ENDED or s.status == "undone" and "after_undo" in self.broken
        if not may or s.half or "doubt" in s.entries and "doubt_ignored" not in self.broken:
            return
        if (left := self.budgets.spend(s.left, "repair")) is None:
            return
        after = self._fenced(s)._replace(status="due", mended=True, state=s.state + 1, left=left)
        if "two_commits" in self.broken:
            yield "it is due again", after._replace(half=True)
        elif "nothing_aside" in self.broken:
            yield "it is repaired", after
        else:
            yield "it is repaired", after._replace(entries=self._aside(s))

    def _aside(self, s: World) -> tuple[str, ...]:
        past = {"failed"}
        past |= {"done"} if "done_aside" in self.broken else set()
        past |= {"doubt"} if "doubt_ignored" in self.broken else set()
        return tuple("aside" if entry in past else entry for entry in s.entries)

    def _under_way(self, s: World, key: int) -> bool:
        return any(one.at in ("opened", "called", "refused") and one.key == key for one in s.workers)

    def _fenced(self, s: World) -> World:
        return s if "no_fence" in self.broken else self._stale(s)

    def _stale(self, s: World) -> World:
        return s._replace(workers=tuple(one._replace(fresh=False) for one in s.workers))

    def _put(self, s: World, who: int, worker: Worker) -> World:
        return s._replace(
            workers=tuple(worker if place == who else one for place, one in enumerate(s.workers))
        )


def _with(row: tuple, place: int, value: object) -> tuple:
    """One place of it changed; "+" counts it up."""
    new = row[place] + 1 if value == "+" else value
    return (*row[:place], new, *row[place + 1 :])
