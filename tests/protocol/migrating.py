"""A run of an old version while workers are deployed one after the other (runs/engine/holding.py, migrating.py).

One old worker serves version 1; a new one serves version 2 and can migrate 1 to 2. The run is one step of work, and
its state has the shape of the version that wrote it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

OLD, NEW = 0, 1
SERVES = {OLD: 1, NEW: 2}


class Worker(NamedTuple):
    at: str = "away"  # away, idle, claimed, migrated half, ran
    fresh: bool = False  # its fence is the run's


class World(NamedTuple):
    status: str  # due, leased, ended
    version: int
    shape: int  # of the state
    workers: tuple[Worker, Worker]
    left: tuple[int, ...]
    bad: str = ""


class Migrating:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", **budgets: int) -> None:
        self.broken = frozenset(broken.split())
        self.budgets = Budgets(**({"crash": 1, "expire": 2, "deploy": 2} | budgets))

    def start(self) -> World:
        return World("due", 1, 1, (Worker("idle"), Worker("idle")), self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s

    def show(self, s: World) -> str:
        return (
            f"{s.status} version {s.version} shape {s.shape} old {s.workers[OLD].at} new {s.workers[NEW].at}"
        )

    def fault(self, s: World) -> str:
        if s.shape > 2:
            return "the state was migrated twice"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        if s.status == "leased" and (left := self.budgets.spend(s.left, "expire")) is not None:
            yield "the lease ends", s._replace(status="due", left=left)
        for who in (OLD, NEW):
            yield from self._deploy(s, who)
            yield from self._work(s, who, s.workers[who])

    def _deploy(self, s: World, who: int) -> Iterator[tuple[str, World]]:
        worker, name = s.workers[who], ("old", "new")[who]
        if worker.at == "idle" and (left := self.budgets.spend(s.left, "deploy")) is not None:
            yield f"the {name} worker is shut down", self._put(s, who, Worker())._replace(left=left)
        if worker.at == "away" and (left := self.budgets.spend(s.left, "deploy")) is not None:
            yield f"the {name} worker is started", self._put(s, who, Worker("idle"))._replace(left=left)
        if worker.at not in ("away", "idle") and (left := self.budgets.spend(s.left, "crash")) is not None:
            yield f"the {name} worker is killed", self._put(s, who, Worker())._replace(left=left)

    def _work(self, s: World, who: int, worker: Worker) -> Iterator[tuple[str, World]]:
        name = ("old", "new")[who]
        if worker.at == "idle" and s.status == "due" and self._may_claim(s, who):
            stale = s._replace(workers=tuple(one._replace(fresh=False) for one in s.workers), status="leased")
            yield f"the {name} worker claims", self._put(stale, who, Worker("claimed", True))
        holds = worker.fresh or "no_fence" in self.broken
        if worker.at == "claimed" and SERVES[who] != s.version and "runs_first" not in self.broken:
            if not holds:
                yield f"the {name} worker finds its fence gone", self._put(s, who, Worker("idle"))
            elif "two_commits" in self.broken:
                yield (
                    "the state is migrated",
                    self._put(s, who, Worker("half", worker.fresh))._replace(shape=s.shape + 1),
                )
            else:
                after = self._put(s, who, Worker("claimed", worker.fresh))
                yield (
                    "version and state are migrated in one commit",
                    after._replace(version=2, shape=s.shape + 1),
                )
        elif worker.at == "claimed":
            yield (
                f"the {name} worker runs the node",
                self._put(s, who, Worker("ran", worker.fresh))._replace(
                    bad=self._wrong(s, who) if worker.fresh else ""
                ),
            )
        if worker.at == "half":
            yield "then the version", self._put(s, who, Worker("claimed", worker.fresh))._replace(version=2)
        if worker.at == "ran" and holds:
            yield (
                f"the {name} worker commits the step",
                self._put(s, who, Worker("idle"))._replace(status="ended", bad=self._wrong(s, who)),
            )
        elif worker.at == "ran":
            yield f"the {name} worker's commit changes nothing", self._put(s, who, Worker("idle"))

    def _wrong(self, s: World, who: int) -> str:
        """A worker's code over a state or a version that is not its own."""
        return "a version's code met another version's state" if SERVES[who] not in (s.shape,) else ""

    def _may_claim(self, s: World, who: int) -> bool:
        if SERVES[who] == s.version or "any_version" in self.broken:
            return True
        nobody_else = s.workers[OLD].at == "away"
        return who == NEW and s.version == 1 and (nobody_else or "beside_old" in self.broken)

    def _put(self, s: World, who: int, worker: Worker) -> World:
        return s._replace(
            workers=tuple(worker if place == who else one for place, one in enumerate(s.workers))
        )
