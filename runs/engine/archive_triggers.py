"""Triggers of the archive: rows go there whole, from the hot table alone, and a key that went there is not given again.

On PostgreSQL the key is looked for after the row is in: an INSERT that waits at the unique index for the move of the
same key finds it in the archive then. Before, it would have looked too early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runs.engine import passages

# hot table -> the cold one to which its rows are moved, and which takes nothing else
MOVED = {
    "runs_checkpoint": "runs_archivedcheckpoint",
    "runs_remark": "runs_archivedremark",
    "runs_ledgerentry": "runs_archivedentry",
    "runs_signal": "runs_archivedsignal",
}
KEY = "runs_idempotency_key_once_ever"
KEY_IS_THERE = "SELECT 1 FROM runs_archivedentry a WHERE a.idempotency_key = NEW.idempotency_key"
KEY_SAID = "the idempotency key was used by a run that is archived"


def names() -> set[str]:
    only_moved = {f"{cold}_only_moved" for cold in MOVED.values()}
    return {f"{hot}_no_delete" for hot in MOVED} | only_moved | {KEY}


def statements(vendor: str, columns_of: Callable[[str], Sequence[str]]) -> Iterator[str]:
    for hot, cold in MOVED.items():
        columns = columns_of(hot)
        goes = passages.is_moved(vendor, "OLD", cold, columns)
        yield from _guard(vendor, f"{hot}_no_delete", "DELETE", hot, goes, f"{hot} is append-only")
        comes = passages.is_moved(vendor, "NEW", hot, columns)
        yield from _guard(
            vendor, f"{cold}_only_moved", "INSERT", cold, comes, f"{cold} takes only what is moved"
        )
    yield from _key(vendor)


def drops(vendor: str) -> Iterator[str]:
    """Of the triggers that keep rows from being deleted."""
    for hot in MOVED:
        yield f"DROP TRIGGER IF EXISTS {hot}_no_delete" + ("" if vendor == "sqlite" else f" ON {hot}")


def drop_key(vendor: str) -> str:
    return f"DROP TRIGGER IF EXISTS {KEY}" + ("" if vendor == "sqlite" else " ON runs_ledgerentry")


def _guard(vendor: str, name: str, event: str, table: str, passes: str, words: str) -> list[str]:
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {name}",
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} WHEN NOT ({passes})"
            f" BEGIN SELECT RAISE(ABORT, '{words}'); END",
        ]
    row = "OLD" if event == "DELETE" else "NEW"
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF {passes} THEN RETURN {row}; END IF; RAISE EXCEPTION '{words}'; END $$",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


def _key(vendor: str) -> list[str]:
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {KEY}",
            f"CREATE TRIGGER {KEY} BEFORE INSERT ON runs_ledgerentry WHEN NEW.idempotency_key IS NOT NULL"
            f" AND EXISTS ({KEY_IS_THERE}) BEGIN SELECT RAISE(ABORT, '{KEY_SAID}'); END",
        ]
    return [
        f"CREATE OR REPLACE FUNCTION {KEY}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF EXISTS ({KEY_IS_THERE}) THEN RAISE EXCEPTION '{KEY_SAID}'"
        " USING ERRCODE = 'unique_violation'; END IF; RETURN NULL; END $$",
        f"DROP TRIGGER IF EXISTS {KEY} ON runs_ledgerentry",
        f"CREATE TRIGGER {KEY} AFTER INSERT ON runs_ledgerentry FOR EACH ROW"
        f" WHEN (NEW.idempotency_key IS NOT NULL) EXECUTE FUNCTION {KEY}()",
    ]
