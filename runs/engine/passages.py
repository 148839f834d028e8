"""What triggers let pass: of an append-only row only its erasure, in its erasable columns, under a tombstone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runs.models.tombstone import ERASED

TOMBSTONES = "runs_tombstone"
SAID_AT_ITS_END = ("erased_at", "rest", "go_on_at")

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


class Sealed:
    """A tombstone: what it says at its end is written once."""

    def passes(self, vendor: str, columns: Sequence[str]) -> str:
        kept = same(vendor, [name for name in columns if name not in SAID_AT_ITS_END])
        return f"OLD.erased_at IS NULL AND {kept}"


def being_erased(run: str) -> str:
    return f"EXISTS (SELECT 1 FROM {TOMBSTONES} t WHERE t.run_id = {run} AND t.erased_at IS NULL)"


def has_tombstone(run: str) -> str:
    return f"EXISTS (SELECT 1 FROM {TOMBSTONES} t WHERE t.run_id = {run})"


def same(vendor: str, columns: Sequence[str]) -> str:
    equals = "IS" if vendor == "sqlite" else "IS NOT DISTINCT FROM"
    return " AND ".join(f'NEW."{name}" {equals} OLD."{name}"' for name in columns)


CHECKPOINT = Erasable({"body": EMPTY, "salt": "", "reason": MARKED})
REMARK = Erasable({"body": MARKED})
ENTRY = Erasable({"request": EMPTY})
SIGNAL = Erasable({"payload": EMPTY})
