"""Runs of one limited queue, claimed by several at once (runs/engine/claim.py, runs/models/limits.py).

A claim locks the limit's row, counts who is driven, and takes one, in one transaction: three actions here, which others
may come between unless the lock keeps them out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

RUNS = 3


class World(NamedTuple):
    runs: tuple[str, ...]  # due, driven, silent (its worker died; the lease goes on), ended
    claimers: tuple[str, ...]  # idle, looked (has counted, and found room)
    lock: int | None  # who holds the limit's row
    counter: int  # only where a number is kept instead of counting
    left: tuple[int, ...]
    bad: str = ""


class Limits:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", *, most: int = 1, claimers: int = 2, **budgets: int) -> None:
        self.broken, self.most, self.claimers = frozenset(broken.split()), most, claimers
        self.budgets = Budgets(**({"crash": 1} | budgets))

    def start(self) -> World:
        return World(("due",) * RUNS, ("idle",) * self.claimers, None, 0, self.budgets.full)

    def key(self, s: World) -> Hashable:
        holder = None if s.lock is None else s.claimers[s.lock]
        return (tuple(sorted(s.runs)), tuple(sorted(s.claimers)), holder, s.counter, s.left, s.bad)

    def show(self, s: World) -> str:
        return f"runs {s.runs} claimers {s.claimers} locked by {s.lock}"

    def fault(self, s: World) -> str:
        if self._driven(s) > self.most:
            return "more are driven than the limit says"
        resting = all(at == "idle" for at in s.claimers) and not self._driven(s)
        if resting and "due" in s.runs and self._found(s) >= self.most:
            return "nobody is driven, and yet there is no room: a place was lost"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        for who, at in enumerate(s.claimers):
            locks = "unlocked" not in self.broken
            if (
                at == "idle"
                and not (locks and s.lock is not None)
                and self._found(s) < self.most
                and "due" in s.runs
            ):
                yield (
                    f"C{who} locks the limit and counts",
                    self._at(s, who, "looked", lock=who if locks else s.lock),
                )
            if at == "looked":
                taken = s
                if "due" in s.runs:
                    taken = s._replace(counter=s.counter + 1, runs=self._turn(s.runs, "due", "driven"))
                yield (
                    f"C{who} takes a run and commits",
                    self._at(taken, who, "idle", lock=None if locks else s.lock),
                )
        if "driven" in s.runs:
            over = s._replace(runs=self._turn(s.runs, "driven", "ended"), counter=s.counter - 1)
            yield "a run ends", over
            if (left := self.budgets.spend(s.left, "crash")) is not None:
                yield "its worker dies", s._replace(runs=self._turn(s.runs, "driven", "silent"), left=left)
        if "silent" in s.runs:
            yield "its lease ends", s._replace(runs=self._turn(s.runs, "silent", "due"))

    def _driven(self, s: World) -> int:
        return sum(run in ("driven", "silent") for run in s.runs)

    def _found(self, s: World) -> int:
        """What a claimer finds: the rows themselves, or a number that is counted up and down."""
        return s.counter if "kept_number" in self.broken else self._driven(s)

    def _at(self, s: World, who: int, at: str, lock: int | None) -> World:
        claimers = tuple(at if place == who else one for place, one in enumerate(s.claimers))
        return s._replace(claimers=claimers, lock=lock)

    def _turn(self, runs: tuple[str, ...], before: str, after: str) -> tuple[str, ...]:
        if before not in runs:
            return runs
        place = runs.index(before)
        return (*runs[:place], after, *runs[place + 1 :])
