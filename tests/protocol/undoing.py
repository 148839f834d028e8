"""A run of two writes that fails or is cancelled, and what undoes them (runs/core/compensating.py).

That a call lands within its tool's limit or never, and that a worker looks at its lease right before it, is the part of
sending.py: here "quiet" says that the quarantine is over, so no call of that entry is under way and none can begin.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

WRITES = (0, 1)
Target = tuple[str, int]  # a write, or what undoes it


class Worker(NamedTuple):
    at: str = "idle"  # ready, call, sent, record
    fresh: bool = False
    target: Target | None = None


class World(NamedTuple):
    status: str  # running, ended
    ending: bool
    writes: tuple[str, str]  # -, open, done, undone, failed
    undos: tuple[str, str]  # -, open, done, doubt, given up
    landed: tuple[tuple[int, int], tuple[int, int]]  # of the writes, and of what undoes them
    workers: tuple[Worker, Worker]
    under_way: tuple[Target, ...]
    left: tuple[int, ...]
    bad: str = ""


Steps = Iterator[tuple[str, World]]


class Undoing:
    """`broken` names rules that are left out; `fails`: the run fails once both writes are done."""

    def __init__(self, broken: str = "", *, fails: bool = True, **budgets: int) -> None:
        self.broken, self.fails = frozenset(broken.split()), fails
        self.budgets = Budgets(**({"crash": 1, "cancel": 0, "refuse": 0, "claim": 4} | budgets))

    def start(self) -> World:
        nothing = ("-", "-")
        return World(
            "running", False, nothing, nothing, ((0, 0), (0, 0)), (Worker(), Worker()), (), self.budgets.full
        )

    def key(self, s: World) -> Hashable:
        return s._replace(workers=tuple(sorted(s.workers, key=repr)), under_way=tuple(sorted(s.under_way)))

    def show(self, s: World) -> str:
        ending = ", ending" if s.ending else ""
        return (
            f"{s.status}{ending} writes {s.writes} undos {s.undos} landed {s.landed} under way {s.under_way}"
        )

    def fault(self, s: World) -> str:
        wrote, undid = s.landed
        if max(wrote) > 1:
            return "a write landed twice"
        if max(undid) > 1:
            return "it was undone twice"
        for place in WRITES:
            settled = s.undos[place] in ("done", "given up")
            if undid[place] and not wrote[place]:
                return "what never happened was undone"
            later = place + 1
            if (
                undid[place]
                and later in WRITES
                and wrote[later]
                and s.undos[later] not in ("done", "given up")
            ):
                return "it was undone before a later one"
            if s.status == "ended" and s.ending and wrote[place] and not settled:
                return "the run has ended and left it done"
        return ""

    def steps(self, s: World) -> Steps:
        for target in sorted(set(s.under_way)):
            rest = list(s.under_way)
            rest.remove(target)
            yield f"the call {target} lands", _land(s._replace(under_way=tuple(rest)), target)
            yield f"the call {target} is lost", s._replace(under_way=tuple(rest))
        if s.status == "running" and not s.ending and (left := self.budgets.spend(s.left, "cancel")):
            stale = tuple(worker._replace(fresh=False) for worker in s.workers)
            yield "it is cancelled", s._replace(ending=True, workers=stale, left=left)
        for place in WRITES:
            if s.undos[place] == "doubt":
                by_hand = _land(s, ("undo", place))
                yield "a person has undone it by hand", _recorded(by_hand, ("undo", place))
                yield "a person gives up on it", s._replace(undos=_with(s.undos, place, "given up"))
                yield "a person wants another try", s._replace(undos=_with(s.undos, place, "-"))
        for i in (0, 1):
            for label, after in self._worker(s, i):
                yield f"worker {i} {label}", after

    def _worker(self, s: World, i: int) -> Steps:
        worker = s.workers[i]
        if worker.at == "idle":
            if s.status == "running" and (left := self.budgets.spend(s.left, "claim")):
                workers = [other._replace(fresh=False) for other in s.workers]
                workers[i] = Worker("ready", True)
                yield "claims", s._replace(workers=tuple(workers), left=left)
            return
        if left := self.budgets.spend(s.left, "crash"):
            yield "crashes", _put(s, i, Worker())._replace(left=left)
        may_write = worker.fresh or "no_fence" in self.broken
        if worker.at == "call":
            calls = _put(s, i, worker._replace(at="sent"))
            yield f"calls {worker.target}", calls._replace(under_way=(*s.under_way, worker.target))
            if worker.target[0] == "undo" and may_write and (left := self.budgets.spend(s.left, "refuse")):
                refused = s._replace(undos=_with(s.undos, worker.target[1], "doubt"), left=left)
                yield "is refused for good", _put(refused, i, Worker())
        elif worker.at == "sent":
            if worker.target not in s.under_way:
                yield "waits no longer", _put(s, i, Worker("ready", worker.fresh))
                if _count(s, worker.target):
                    yield "gets its result", _put(s, i, worker._replace(at="record"))
        elif not may_write:
            yield "has lost the run", _put(s, i, Worker())
        elif worker.at == "record":
            yield (
                f"records {worker.target}",
                _put(_recorded(s, worker.target), i, Worker("ready", worker.fresh)),
            )
        elif s.ending and worker.fresh:
            yield from self._undo(s, i)
        else:
            yield from self._go_on(s, i)

    def _go_on(self, s: World, i: int) -> Steps:
        """A node."""
        for place in WRITES:
            if s.writes[place] == "open":
                if not self._quiet(s, i, ("write", place)):
                    return
                found = "done" if s.landed[0][place] else "-"
                yield f"finds write {place} {found}", s._replace(writes=_with(s.writes, place, found))
                return
            if s.writes[place] == "-":
                opened = s._replace(writes=_with(s.writes, place, "open"))
                yield (
                    f"opens write {place}",
                    _put(opened, i, Worker("call", s.workers[i].fresh, ("write", place))),
                )
                return
        if self.fails:
            yield "fails", _put(s, i, Worker())._replace(ending=True)

    def _undo(self, s: World, i: int) -> Steps:
        for place in WRITES:
            if s.writes[place] == "open" and "no_find_out" not in self.broken:
                if self._quiet(s, i, ("write", place)):
                    found = "done" if s.landed[0][place] else "failed"
                    yield f"finds write {place} {found}", s._replace(writes=_with(s.writes, place, found))
                return
        left = [place for place in WRITES if s.writes[place] == "done" and s.undos[place] != "given up"]
        if not left:
            yield "ends the run", _put(s, i, Worker())._replace(status="ended")
            return
        place = left[0] if "oldest_first" in self.broken else left[-1]
        target = ("undo", place)
        if s.undos[place] == "doubt":
            if "leaves_doubt" in self.broken:
                yield "ends the run", _put(s, i, Worker())._replace(status="ended")
            return
        if s.undos[place] == "open":
            if not self._quiet(s, i, target):
                return
            if s.landed[1][place]:
                yield f"finds {target} done", _recorded(s, target)
                return
        opened = s if "no_intent" in self.broken else s._replace(undos=_with(s.undos, place, "open"))
        yield f"opens {target}", _put(opened, i, Worker("call", True, target))

    def _quiet(self, s: World, i: int, target: Target) -> bool:
        if "no_quarantine" in self.broken:
            return True
        others = (other for place, other in enumerate(s.workers) if place != i)
        about_to = any(other.target == target and other.at in ("call", "sent") for other in others)
        return target not in s.under_way and not about_to


def _land(s: World, target: Target) -> World:
    kind, place = target
    which = 0 if kind == "write" else 1
    counts = _with(s.landed[which], place, s.landed[which][place] + 1)
    return s._replace(landed=_with(s.landed, which, counts))


def _recorded(s: World, target: Target) -> World:
    """What undoes a write, and the write, change in one commit."""
    kind, place = target
    if kind == "write":
        return s._replace(writes=_with(s.writes, place, "done"))
    return s._replace(undos=_with(s.undos, place, "done"), writes=_with(s.writes, place, "undone"))


def _count(s: World, target: Target) -> int:
    return s.landed[0 if target[0] == "write" else 1][target[1]]


def _with(row: tuple, place: int, value: object) -> tuple:
    return (*row[:place], value, *row[place + 1 :])


def _put(s: World, i: int, worker: Worker) -> World:
    return s._replace(workers=_with(s.workers, i, worker))
