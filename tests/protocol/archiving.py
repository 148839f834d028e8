"""The archiving of a run against who brings it back, keeps it, reads it, or erases it at the same time.

As runs/engine/archiving.py and moving.py do it: an Archival under the run's lock, then each row goes to the cold table
in one transaction that locks it, then a last look. An eraser empties rows wherever they are, and seals after a look
into both tables. A row is where it is, and whether it still tells; "copied" is what a mover holds that took no lock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

HOT, COLD, BOTH, NOWHERE = "hot", "cold", "both", "nowhere"


class Row(NamedTuple):
    place: str = HOT
    full: bool = True
    copied: bool | None = None  # whether the copy in the mover's hands tells


class World(NamedTuple):
    lives: bool
    kept: bool
    archival: str  # "", begun, archived
    kept_before: bool  # it was kept when it was begun
    archiver: str  # idle, looked, at work
    stone: str  # "", begun, sealed
    eraser: str  # idle, at work
    rows: tuple[Row, ...]
    left: tuple[int, ...]
    bad: str = ""


class Archiving:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", **budgets: int) -> None:
        self.broken = frozenset(broken.split())
        self.budgets = Budgets(**({"repair": 1, "keep": 1, "crash": 2} | budgets))

    def start(self) -> World:
        return World(True, False, "", False, "idle", "", "idle", (Row(), Row()), self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s

    def show(self, s: World) -> str:
        rows = ", ".join(f"{row.place} {'full' if row.full else 'empty'}" for row in s.rows)
        kept = ", kept" if s.kept else ""
        return f"{'lives' if s.lives else 'ended'}{kept} archive {s.archival or '-'} tombstone {s.stone or '-'}: {rows}"

    def fault(self, s: World) -> str:
        places = {row.place for row in s.rows}
        if BOTH in places:
            return "who reads now sees a row twice"
        if NOWHERE in places:
            return "who reads now misses a row"
        if s.lives and COLD in places:
            return "a run that lives has lost rows"
        if s.kept_before:
            return "a kept run was archived"
        if COLD in places and not s.archival:
            return "rows are in the archive and nothing says why"
        if s.archival == "archived" and HOT in places:
            return "it is called archived, and a row was left"
        if s.stone == "sealed" and any(row.full for row in s.rows):
            return "it is called erased, and a row still tells"
        return ""

    def steps(self, s: World) -> Iterator[tuple[str, World]]:
        yield from self._life(s)
        yield from self._archiver(s)
        yield from self._eraser(s)
        for who in ("archiver", "eraser"):
            if getattr(s, who) != "idle" and (left := self.budgets.spend(s.left, "crash")) is not None:
                dropped = tuple(row._replace(copied=None) for row in s.rows) if who == "archiver" else s.rows
                yield f"the {who} is killed", s._replace(**{who: "idle"}, rows=dropped, left=left)

    def _life(self, s: World) -> Iterator[tuple[str, World]]:
        """Whoever moves or keeps the run locks it: each is one action."""
        if s.lives:
            yield "the run ends", s._replace(lives=False)
        gone = s.stone or s.archival and "comes_back" not in self.broken
        if not s.lives and not gone and (left := self.budgets.spend(s.left, "repair")) is not None:
            yield "an operator brings it back", s._replace(lives=True, left=left)
        if not s.kept and not s.stone and (left := self.budgets.spend(s.left, "keep")) is not None:
            yield "it is kept", s._replace(kept=True, left=left)

    def _archiver(self, s: World) -> Iterator[tuple[str, World]]:
        may = not s.lives and (not s.kept or "kept" in self.broken) and not s.stone
        begun = s._replace(archival="begun", kept_before=s.kept, archiver="at work")
        if s.archiver == "idle" and not s.archival and may:
            if "unlocked" in self.broken:
                yield "the archiver looks at the run", s._replace(archiver="looked")
            elif "no_intent" in self.broken:
                yield "the archiver begins without a word", s._replace(archiver="at work")
            else:
                yield "the Archival, under the lock", begun
        if s.archiver == "looked":
            yield "the Archival, later", begun
        if s.archiver == "idle" and s.archival == "begun":
            yield "the chore goes on", s._replace(archiver="at work")
        if s.archiver != "at work":
            return
        for place, row in enumerate(s.rows):
            yield from self._move(s, place, row)
        hot = any(row.place != COLD for row in s.rows)
        if s.archival == "begun" and (not hot or "closes_unseen" in self.broken):
            yield (
                "archived, after a last look under the lock",
                s._replace(archival="archived", archiver="idle"),
            )

    def _move(self, s: World, place: int, row: Row) -> Iterator[tuple[str, World]]:
        def with_row(**changes: object) -> World:
            rows = (*s.rows[:place], row._replace(**changes), *s.rows[place + 1 :])
            return s._replace(rows=rows)

        if "two_commits" in self.broken:
            if row.place == HOT:
                yield "a row is inserted there", with_row(place=BOTH)
            elif row.place == BOTH:
                yield "and deleted here", with_row(place=COLD)
        elif "deletes_first" in self.broken:
            if row.place == HOT:
                yield "a row is deleted here", with_row(place=NOWHERE)
            elif row.place == NOWHERE:
                yield "and inserted there", with_row(place=COLD)
        elif "copies_unlocked" in self.broken:
            if row.place == HOT and row.copied is None:
                yield "a row is read", with_row(copied=row.full)
            elif row.place == HOT:
                yield "and moved as it was read", with_row(place=COLD, full=row.copied, copied=None)
        elif row.place == HOT:
            yield "a row is moved", with_row(place=COLD)

    def _eraser(self, s: World) -> Iterator[tuple[str, World]]:
        if s.eraser == "idle" and not s.stone and not s.lives and not s.kept:
            yield "the tombstone, under the lock", s._replace(stone="begun", eraser="at work")
        if s.eraser == "idle" and s.stone == "begun":
            yield "the chore goes on erasing", s._replace(eraser="at work")
        if s.eraser != "at work":
            return
        seen = {HOT} if "hot_alone" in self.broken else {HOT, COLD}
        for place, row in enumerate(s.rows):
            if row.full and row.place in seen:
                rows = (*s.rows[:place], row._replace(full=False), *s.rows[place + 1 :])
                yield "a row is emptied", s._replace(rows=rows)
        # a mover that holds a copy holds the run's lock as well, so that the seal waits for it
        free = all(row.copied is None for row in s.rows) or "copies_unlocked" in self.broken
        if s.stone == "begun" and free and not any(row.full and row.place in seen for row in s.rows):
            yield "sealed, after a look into both tables", s._replace(stone="sealed", eraser="idle")
