"""What the database itself refuses: rows that break a rule, changes of what is final (DESIGN section 5)."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime

import pytest
from django.apps import apps as django_apps
from django.db import IntegrityError, connection, transaction
from django.db.models import CheckConstraint

from runs import END, Graph, start
from runs.engine.ids import uuid7
from runs.models import LedgerEntry, Run
from runs.models.rules import SEEN
from tests.runs.driving import drive, registered

pytestmark = pytest.mark.django_db(transaction=True)


one = Graph("one step")


@one.node
def step(run, state):
    return END


BLANKS = "".join(chr(number) for number in range(sys.maxunicode + 1) if not chr(number).strip())


def test_a_blank_id_or_key_is_refused_by_the_database_too():
    """E9: whatever blanks it is made of, also those that only Unicode knows; in code too (test_starts.py)."""
    assert len(BLANKS) > 25
    with registered(one):
        run = start("one step", {})
    rows = Run.objects.filter(pk=run.pk)
    for changes in [{name: blank} for name in ("key", "graph") for blank in ("", " ", BLANKS)]:
        with pytest.raises(IntegrityError, match="not_blank"), transaction.atomic():
            rows.update(**changes)
    assert rows.update(key=f"{BLANKS}\u200b{BLANKS}"), "a blank is what `strip` takes away, and nothing else"


def test_one_pattern_says_what_is_blank_in_every_table():
    assert [each for each in map(chr, range(sys.maxunicode + 1)) if not re.search(SEEN, each)] == list(BLANKS)
    checks = [
        check
        for model in django_apps.get_models()
        for check in model._meta.constraints
        if isinstance(check, CheckConstraint) and "__regex" in str(check.condition)
    ]
    assert len(checks) == 12 and not [
        check.name for check in checks if repr(SEEN) not in str(check.condition)
    ]


BROKEN_RULES = {
    "run_status_known": {"status": "asleep"},
    "run_ended_never_wakes": {"status": "completed"},
    "run_live_always_wakes": {"wake_at": None},
    "run_lease_only_while_running": {"leased_by": "w1"},
    "run_ending_while_compensated": {"ending": "failed", "status": "created"},
    "run_key_not_blank": {"key": "\t"},
    "run_graph_not_blank": {"graph": " "},
    "run_priority_known": {"priority": 4},
    "run_item_not_negative": {"item": -1},
    "entry_status_known": {"status": "lost"},
    "entry_kind_known": {"kind": "rumour"},
    "entry_key_not_blank": {"key": " "},
    "entry_idempotency_key_not_blank": {"idempotency_key": " "},
    "entry_open_is_unanswered": {"status": "open", "answered_at": datetime(2026, 1, 1, tzinfo=UTC)},
    "entry_done_has_result": {"status": "done", "result": None},
    "entry_counts_not_negative": {"attempts": -1},
}


def test_there_is_a_broken_row_for_every_rule():
    from runs.models.rules import Rule

    rules = [
        rule for model in (Run, LedgerEntry) for rule in model._meta.constraints if isinstance(rule, Rule)
    ]
    assert {rule.name for rule in rules} == set(BROKEN_RULES)


@pytest.mark.parametrize("rule", BROKEN_RULES)
def test_the_database_itself_refuses_a_row_that_breaks_a_rule(rule):
    """On PostgreSQL rules are triggers: they must fire on an update of these columns, and on an insert."""
    with registered(one):
        run = start("one step", {})
    if rule.startswith("entry"):
        row = LedgerEntry.objects.create(
            run=run, step=1, key="k", kind="value", status="open", opened_at=run.created_at
        )
    else:
        row = run
    final = "what an entry asks is final"  # of some columns no change at all is allowed
    with pytest.raises(IntegrityError, match=f"{rule}|{final}"), transaction.atomic():
        type(row).objects.filter(pk=row.pk).update(**BROKEN_RULES[rule])
    row.refresh_from_db()
    if rule.startswith("entry"):
        row.key, row.idempotency_key = "another", "another"
    else:
        row.key = "another"
    row.pk = None if rule.startswith("entry") else uuid7()
    for name, value in BROKEN_RULES[rule].items():
        setattr(row, name, value)
    with pytest.raises(IntegrityError, match=rule), transaction.atomic():
        row.save(force_insert=True)


@pytest.mark.postgres_only
def test_no_statement_of_a_step_has_a_check_constraint_to_parse():
    """ADR 11: also not one that Django adds by itself to a positive number."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = ANY (%s::regclass[])",
            [["runs_run", "runs_checkpoint", "runs_ledgerentry"]],
        )
        assert cursor.fetchall() == []


def test_checkpoints_are_append_only_in_the_database():
    from django.db import DatabaseError

    with registered(one):
        run = start("one step", {})
    with pytest.raises(DatabaseError, match="append-only"):
        run.checkpoints.update(reason="never happened")
    with pytest.raises(DatabaseError, match="append-only"):
        run.checkpoints.all().delete()


def test_what_an_entry_asks_is_final_in_the_database():
    """P8: nobody changes a request after it was approved."""
    from django.db import DatabaseError

    graph = Graph("asks once")

    @graph.node
    def ask(run, state):
        run.interrupt("Well?")

    with registered(graph):
        run = start("asks once", {})
        drive(run)
    for changes in (
        {"request": "{}"},
        {"key": "other"},
        {"request_digest": "0" * 64},
        {"idempotency_key": "k"},
    ):
        with pytest.raises(DatabaseError, match="final"):
            LedgerEntry.objects.filter(run=run).update(**changes)


def test_a_missing_trigger_is_named_by_the_database_check():
    from runs.checks import triggers_in_place
    from runs.engine import triggers

    assert triggers_in_place(["default"]) == []
    triggers.remove()
    try:
        (found,) = triggers_in_place(["default"])
        assert "runs_checkpoint_no_update" in found.msg
    finally:
        triggers.install()
