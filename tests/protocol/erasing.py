"""The erasure of a run against who ends it, undoes an answer, settles a doubt, keeps it, or comes late.

As runs/engine/erasing.py does it: a tombstone under the run's lock, then rows are emptied, then a seal under the lock
after a last look. Two rows hold what the run was about; a worker that lost its lease may still add a third.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

ENDED = "ended"


class World(NamedTuple):
    status: str  # waiting (for an answer that may be undone), running, ended
    doubt: bool  # a write of it is in doubt
    kept: bool
    stone: str  # "", begun, sealed
    full: int  # rows that still tell
    emptied: int
    late: str  # of a late worker's row: "", checked (its trigger saw no tombstone), written, emptied
    eraser: str  # idle, looked, at work
    left: tuple[int, ...]
    bad: str = ""


class Erasing:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", **budgets: int) -> None:
        self.broken = frozenset(broken.split())
        defaults = {"claim": 2, "undo": 1, "settle": 1, "doubt": 1, "repair": 1, "keep": 1, "crash": 2}
        self.budgets = Budgets(**(defaults | budgets))

    def start(self) -> World:
        return World("waiting", False, False, "", 2, 0, "", "idle", self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s

    def show(self, s: World) -> str:
        doubt, kept = (", in doubt" if s.doubt else ""), (", kept" if s.kept else "")
        return (
            f"{s.status}{doubt}{kept} tombstone {s.stone or '-'} {s.full} full rows, late row {s.late or '-'}"
        )

    def fault(self, s: World) -> str:
        if s.emptied and s.status != ENDED:
            return "a run that lives has lost rows"
        if s.emptied and s.doubt:
            return "what was in doubt can be settled no more"
        if s.emptied and s.kept:
            return "a kept run was erased"
        if s.emptied and not s.stone:
            return "rows are gone and no tombstone says why"
        if s.stone == "sealed" and (s.full or s.late == "written"):
            return "it is called erased, and a row still tells"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        yield from self._life(s)
        yield from self._late_worker(s)
        yield from self._eraser(s)
        if s.eraser != "idle" and (left := self.budgets.spend(s.left, "crash")) is not None:
            yield "the eraser is killed", s._replace(eraser="idle", left=left)

    def _life(self, s: World) -> Iterator[tuple[str, World]]:
        """Whoever moves the run locks it: each is one action."""

        def spent(name: str) -> tuple[int, ...] | None:
            return self.budgets.spend(s.left, name)

        if s.status == "waiting" and (left := spent("claim")) is not None:
            yield "a worker claims and takes the answer", s._replace(status="running", left=left)
        if s.status == "waiting" and (left := spent("undo")) is not None:
            yield "the answer is undone", s._replace(left=left)
        if s.status == "running":
            yield "the run ends", s._replace(status=ENDED)
            if (left := spent("doubt")) is not None:
                yield "it ends with a write in doubt", s._replace(status=ENDED, doubt=True, left=left)
        if s.doubt and (left := spent("settle")) is not None:
            yield "a person settles the doubt", s._replace(doubt=False, left=left)
        comes_back = not s.stone or "comes_back" in self.broken
        if s.status == ENDED and comes_back and (left := spent("repair")) is not None:
            yield "an operator brings it back", s._replace(status="running", left=left)
        if (
            not s.kept
            and (not s.stone or "keeps_erased" in self.broken)
            and (left := spent("keep")) is not None
        ):
            yield "it is kept", s._replace(kept=True, left=left)

    def _late_worker(self, s: World) -> Iterator[tuple[str, World]]:
        """Its INSERT looks for a tombstone, and only then waits for the run's lock."""
        if s.late == "" and s.status == ENDED and (not s.stone or "late_rows" in self.broken):
            yield "a late worker's INSERT finds no tombstone", s._replace(late="checked")
        if s.late == "checked":
            # its lock was asked for before the seal's, so the seal waits for it
            yield "the late row is committed", s._replace(late="written")

    def _eraser(self, s: World) -> Iterator[tuple[str, World]]:
        may = s.status == ENDED and (not s.doubt or "in_doubt" in self.broken) and not s.kept
        if s.eraser == "idle" and not s.stone and may:
            if "unlocked" in self.broken:
                yield "the eraser looks at the run", s._replace(eraser="looked")
            elif "no_intent" in self.broken:
                yield "the eraser begins without a tombstone", s._replace(eraser="at work")
            else:
                yield "tombstone, under the lock", s._replace(stone="begun", eraser="at work")
        if s.eraser == "looked":
            yield "tombstone, later", s._replace(stone="begun", eraser="at work")
        if s.eraser == "idle" and s.stone == "begun" and "nobody_goes_on" not in self.broken:
            yield "the chore goes on", s._replace(eraser="at work")
        if s.eraser == "at work" and s.full:
            yield "a row is emptied", s._replace(full=s.full - 1, emptied=s.emptied + 1)
        if s.eraser == "at work" and s.late == "written":
            yield "the late row is emptied", s._replace(late="emptied")
        looks = "seals_unseen" not in self.broken
        if (
            s.eraser == "at work"
            and s.stone != "sealed"
            and not s.full
            and not (looks and s.late in ("checked", "written"))
        ):
            yield "sealed, after a last look under the lock", s._replace(stone="sealed", eraser="idle")
