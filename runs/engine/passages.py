"""What triggers let pass of rows that are never changed or removed.

Their erasure, in their erasable columns, under a tombstone; and their move to the archive, under an Archival: what is
inserted there stands here, and what is deleted here stands there, the same in every column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.models.tombstone import ERASED

TOMBSTONES, ARCHIVALS = "runs_tombstone", "runs_archival"

EMPTY = "''"
MARKED = f"'{ERASED}'"  # in place of a text that a digest covers
NO_BYTES = {"sqlite": "X''", "postgresql": r"'\x'::bytea"}


@dataclass(frozen=True, slots=True)
class Erasable:
    """`gone`: column -> the SQL of what then stands there, "" for no bytes; `run`: the SQL of the row's run."""

    gone: Mapping[str, str]
    run: str = "OLD.run_id"

    def passes(self, vendor: str, columns: Sequence[str]) -> str:
        """The SQL condition of an UPDATE that the trigger lets pass."""
        erased = (
            f'({same(vendor, [name])} OR NEW."{name}" = {self.gone[name] or NO_BYTES[vendor]})'
            for name in self.gone
        )
        kept = same(vendor, [name for name in columns if name not in self.gone])
        return " AND ".join([being_erased(self.run), kept, *erased])


@dataclass(frozen=True, slots=True)
class Sealed:
    """What begins and ends, and is then final. What it says at its end is written once; `ended` is when that was."""

    ended: str
    said_at_its_end: tuple[str, ...]

    def passes(self, vendor: str, columns: Sequence[str]) -> str:
        kept = same(vendor, [name for name in columns if name not in self.said_at_its_end])
        return f'OLD."{self.ended}" IS NULL AND {kept}'


def being_erased(run: str) -> str:
    return f"EXISTS (SELECT 1 FROM {TOMBSTONES} t WHERE t.run_id = {run} AND t.erased_at IS NULL)"


def has_tombstone(run: str) -> str:
    return f"EXISTS (SELECT 1 FROM {TOMBSTONES} t WHERE t.run_id = {run})"


def is_moved(vendor: str, row: str, other: str, columns: Sequence[str]) -> str:
    """`row` is OLD or NEW, of a run that is being archived; and its like stands in the other table."""
    under_way = f"SELECT 1 FROM {ARCHIVALS} a WHERE a.run_id = {row}.run_id AND a.archived_at IS NULL"
    like_it = same(vendor, columns, "o", row)
    return f"EXISTS ({under_way}) AND EXISTS (SELECT 1 FROM {other} o WHERE o.id = {row}.id AND {like_it})"


def has_archival(run: str) -> str:
    return f"EXISTS (SELECT 1 FROM {ARCHIVALS} a WHERE a.run_id = {run})"


def same(vendor: str, columns: Sequence[str], one: str = "NEW", other: str = "OLD") -> str:
    equals = "IS" if vendor == "sqlite" else "IS NOT DISTINCT FROM"
    return " AND ".join(f'{one}."{name}" {equals} {other}."{name}"' for name in columns)


CHECKPOINT = Erasable({"body": EMPTY, "salt": "", "reason": MARKED})
REMARK = Erasable({"body": MARKED})
ENTRY = Erasable({"request": EMPTY})
SIGNAL = Erasable({"payload": EMPTY})
ARCHIVED_ENTRY = Erasable({"request": EMPTY, "result": EMPTY, "error": EMPTY})
TOMBSTONE = Sealed("erased_at", ("erased_at", "rest", "go_on_at"))
ARCHIVAL = Sealed("archived_at", ("archived_at", "go_on_at"))
