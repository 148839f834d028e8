"""Append-only rows: triggers on both databases, put back after every migrate (Django rebuilds SQLite tables)."""

from __future__ import annotations

from functools import partial

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.engine import archive_triggers, passages
from runs.engine.passages import ARCHIVALS, TOMBSTONES, Erasable, Sealed

# tables whose rows may be inserted and never changed or removed; and the one change of them that passes, if any
TABLES: dict[str, Erasable | Sealed | None] = {
    "runs_checkpoint": passages.CHECKPOINT,
    "runs_remark": passages.REMARK,
    TOMBSTONES: passages.TOMBSTONE,
    ARCHIVALS: passages.ARCHIVAL,
    "runs_archivedcheckpoint": passages.CHECKPOINT,
    "runs_archivedremark": passages.REMARK,
    "runs_archivedentry": passages.ARCHIVED_ENTRY,
    "runs_archivedsignal": passages.SIGNAL,
}

GATE = "runs_gated_call_is_what_was_approved"
FINAL = "runs_question_is_final"
MAILBOX = "runs_signal_is_final"
ENDED = "runs_erased_stays_ended"
CLOSED = {"runs_remark": "runs_erased_takes_no_remark", "runs_blobuse": "runs_erased_takes_no_blob"}
FINAL_COLUMNS = (
    "run_id",
    "step",
    "key",
    "kind",
    "request",
    "request_digest",
    "idempotency_key",
    "decided_by_id",
    "compensation",
    "compensates_id",
)
MAILBOX_COLUMNS = ("run_id", "name", "payload", "key", "by", "at")


def append_only(table: str, erasable: Erasable | None = None) -> None:
    """Make a table append-only from the next migrate on (an app names its own tables in AppConfig.ready).

    `erasable`: what the erasure of a run may do to its rows.
    """
    TABLES[table] = erasable


def install(using: str = "default", **_: object) -> None:
    connection = connections[using]
    present = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        erased = TOMBSTONES in present
        for table in sorted(TABLES.keys() & present):
            passage = _passage(connection, table) if erased and TABLES[table] else ""
            for statement in _append_only(connection.vendor, table, passage):
                cursor.execute(statement)
        if "runs_ledgerentry" in present:
            for statement in [*_gate(connection.vendor), *_final(connection.vendor, erased)]:
                cursor.execute(statement)
        if "runs_signal" in present:
            for statement in _mailbox(connection.vendor, erased):
                cursor.execute(statement)
        if erased:
            for statement in _closed(connection.vendor, ARCHIVALS in present):
                cursor.execute(statement)
        if ARCHIVALS in present:
            for statement in archive_triggers.statements(connection.vendor, partial(_columns, connection)):
                cursor.execute(statement)
        elif "runs_ledgerentry" in present:  # the archive's tables were taken back
            cursor.execute(archive_triggers.drop_key(connection.vendor))


def remove(using: str = "default") -> None:
    """For test databases that are emptied between tests."""
    connection = connections[using]
    present = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for table in sorted(TABLES.keys() & present):
            for event in ("update", "delete", "truncate"):
                name = f"{table}_no_{event}"
                if connection.vendor == "sqlite":
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
                else:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}")
        if ARCHIVALS in present:
            for statement in archive_triggers.drops(connection.vendor):
                cursor.execute(statement)


def missing(using: str = "default") -> list[str]:
    """Names of the triggers that should be there and are not."""
    connection = connections[using]
    present = set(connection.introspection.table_names())
    catalogue = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
    )
    with connection.cursor() as cursor:
        cursor.execute(catalogue)
        found = {name for (name,) in cursor.fetchall()}
    wanted = {f"{table}_no_{event}" for table in TABLES.keys() & present for event in ("update", "delete")}
    if "runs_ledgerentry" in present:
        wanted |= {GATE, FINAL}
    if "runs_signal" in present:
        wanted.add(MAILBOX)
    if TOMBSTONES in present:
        wanted |= {ENDED, *CLOSED.values()}
    if ARCHIVALS in present:
        wanted |= archive_triggers.names()
    if connection.vendor == "postgresql":
        wanted |= set(_rules())
    return sorted(wanted - found)


def _rules() -> list[str]:
    """Rules of rows are triggers on PostgreSQL; the migrations make them."""
    from django.apps import apps

    from runs.models.rules import Rule

    return [
        rule.name
        for model in apps.get_models()
        if model._meta.managed
        for rule in model._meta.constraints
        if isinstance(rule, Rule)
    ]


def _passage(connection: BaseDatabaseWrapper, table: str) -> str:
    return TABLES[table].passes(connection.vendor, _columns(connection, table))


def _columns(connection: BaseDatabaseWrapper, table: str) -> list[str]:
    with connection.cursor() as cursor:  # Django's own way parses the table's SQL each time
        cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")
        return [name for name, *_ in cursor.description]


def _append_only(vendor: str, table: str, passage: str) -> list[str]:
    """`passage`: the condition of an UPDATE that may pass; nothing may be deleted."""
    statements = []
    for event in ("UPDATE", "DELETE"):
        name, words = f"{table}_no_{event.lower()}", f"{table} is append-only"
        passes = passage if event == "UPDATE" else ""
        if vendor == "sqlite":
            when = f" WHEN NOT ({passes})" if passes else ""
            statements += [
                f"DROP TRIGGER IF EXISTS {name}",
                f"CREATE TRIGGER {name} BEFORE {event} ON {table}{when} BEGIN SELECT RAISE(ABORT, '{words}'); END",
            ]
        else:
            function = "runs_append_only"
            if passes:
                function = name
                statements.append(
                    f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                    f" IF {passes} THEN RETURN NEW; END IF; RAISE EXCEPTION '{words}'; END $$"
                )
            statements += [
                f"DROP TRIGGER IF EXISTS {name} ON {table}",
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()",
            ]
    if vendor != "sqlite":
        name = f"{table}_no_truncate"
        function = (
            "CREATE OR REPLACE FUNCTION runs_append_only() RETURNS trigger LANGUAGE plpgsql AS $$"
            " BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
        )
        statements.insert(0, function)
        statements += [
            f"DROP TRIGGER IF EXISTS {name} ON {table}",
            f"CREATE TRIGGER {name} BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION runs_append_only()",
        ]
    return statements


def _gate(vendor: str) -> list[str]:
    """An effect that carries out a decision has exactly the request that was approved, whoever inserts it."""
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {GATE}",
            f"CREATE TRIGGER {GATE} BEFORE INSERT ON runs_ledgerentry WHEN NEW.decided_by_id IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM runs_ledgerentry q WHERE q.id = NEW.decided_by_id"
            " AND q.run_id = NEW.run_id AND q.approved_digest = NEW.request_digest)"
            " BEGIN SELECT RAISE(ABORT, 'what would run is not what was approved'); END",
        ]
    return [
        f"CREATE OR REPLACE FUNCTION {GATE}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NOT EXISTS (SELECT 1 FROM runs_ledgerentry q WHERE q.id = NEW.decided_by_id"
        " AND q.run_id = NEW.run_id AND q.approved_digest = NEW.request_digest)"
        " THEN RAISE EXCEPTION 'what would run is not what was approved'; END IF; RETURN NEW; END $$",
        f"DROP TRIGGER IF EXISTS {GATE} ON runs_ledgerentry",
        f"CREATE TRIGGER {GATE} BEFORE INSERT ON runs_ledgerentry FOR EACH ROW"
        f" WHEN (NEW.decided_by_id IS NOT NULL) EXECUTE FUNCTION {GATE}()",
    ]


def _final(vendor: str, erased: bool) -> list[str]:
    """What an entry asks is written once; only its answer changes."""
    changed = _changed(vendor, FINAL_COLUMNS)
    passage = passages.ENTRY.passes(vendor, FINAL_COLUMNS) if erased else ""
    return _refused(
        vendor, FINAL, "runs_ledgerentry", FINAL_COLUMNS, changed, "what an entry asks is final", passage
    )


def _mailbox(vendor: str, erased: bool) -> list[str]:
    """Of a signal only who has read it is written later, and that once."""
    columns = (*MAILBOX_COLUMNS, "consumed_by_id")
    changed = f"({_changed(vendor, MAILBOX_COLUMNS)} OR OLD.consumed_by_id IS NOT NULL)"
    passage = passages.SIGNAL.passes(vendor, columns) if erased else ""
    return _refused(
        vendor, MAILBOX, "runs_signal", columns, changed, "a signal is final, and is read once", passage
    )


def _closed(vendor: str, archived: bool) -> list[str]:
    """An erased run stays ended, and nothing is added to it: also not by a worker that comes late.

    `archived`: one in the archive stays ended as well.
    """
    over = "OLD.status IN ('completed', 'failed', 'cancelled')"
    back = f"{over} AND {_changed(vendor, ('status',))}"
    here, words = f"NOT {passages.has_tombstone('NEW.root')}", "the run was erased"
    if archived:
        here, words = f"{here} AND NOT {passages.has_archival('NEW.root')}", f"{words}, or is archived"
    statements = _refused(vendor, ENDED, "runs_run", ("status",), back, words, here)
    for table, name in CLOSED.items():
        if vendor == "sqlite":
            statements += [
                f"DROP TRIGGER IF EXISTS {name}",
                f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {passages.has_tombstone('NEW.run_id')}"
                " BEGIN SELECT RAISE(ABORT, 'the run was erased'); END",
            ]
            continue
        statements += [
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {passages.has_tombstone('NEW.run_id')} THEN RAISE EXCEPTION 'the run was erased'"
            " USING ERRCODE = 'check_violation'; END IF; RETURN NEW; END $$",
            f"DROP TRIGGER IF EXISTS {name} ON {table}",
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
        ]
    return statements


def _changed(vendor: str, columns: tuple[str, ...]) -> str:
    differs = "IS NOT" if vendor == "sqlite" else "IS DISTINCT FROM"
    return " OR ".join(f'NEW."{name}" {differs} OLD."{name}"' for name in columns)


def _refused(
    vendor: str, name: str, table: str, columns: tuple[str, ...], when: str, words: str, passage: str = ""
) -> list[str]:
    """A trigger that refuses an UPDATE of these columns where `when` holds, unless `passage` does."""
    update = "UPDATE OF " + ", ".join(f'"{column}"' for column in columns)
    if vendor == "sqlite":
        unless = f" AND NOT ({passage})" if passage else ""
        return [
            f"DROP TRIGGER IF EXISTS {name}",
            f"CREATE TRIGGER {name} BEFORE {update} ON {table} WHEN ({when}){unless}"
            f" BEGIN SELECT RAISE(ABORT, '{words}'); END",
        ]
    passes = f" IF {passage} THEN RETURN NEW; END IF;" if passage else ""  # WHEN knows no sub-select
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN{passes}"
        f" RAISE EXCEPTION '{words}'; END $$",
        f"DROP TRIGGER IF EXISTS {name} ON {table}",
        f"CREATE TRIGGER {name} BEFORE {update} ON {table} FOR EACH ROW"
        f" WHEN ({when}) EXECUTE FUNCTION {name}()",
    ]
