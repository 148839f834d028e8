from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction

from approvals.chain import first_break, trail
from approvals.models import Activity, Approval, Decision
from tests.approvals.cases import MAIL, ask

pytestmark = pytest.mark.django_db


@pytest.fixture
def told_story(ada, bob):
    """An approval with one row of nearly every kind."""
    approval = ask(quorum=2, due=timedelta(hours=1))
    approval.claim(ada)
    approval.comment(bob, "Fine by me.")
    approval.decide(by=ada, verdict="approve", seen={"title": "Send?"})
    approval.take_back(ada)
    approval.decide(by=ada, verdict="edit", payload={**MAIL, "copies": 8}, reason="one more")
    approval.decide(by=bob, verdict="approve")
    approval.undo(bob)
    approval.decide(by=bob, verdict="reject", reason="no")
    return Approval.objects.get(pk=approval.pk)


def test_every_change_leaves_exactly_one_row(told_story):
    """A16; that a row and its change stand or fall together is in tests/runs/test_faults.py, on both databases."""
    rows = trail(told_story)
    assert [row.seq for row in rows] == list(range(1, 10))
    assert (told_story.length, told_story.head) == (9, rows[-1].digest)
    assert first_break(told_story) is None
    revisions = [row.revision for row in rows]
    assert revisions == sorted(revisions)
    assert revisions[-1] == told_story.revision


def altered(row, **fields):
    """Change a row as somebody with the database's keys would."""
    from runs.engine import triggers

    triggers.remove()
    type(row).objects.filter(pk=row.pk).update(**fields)
    triggers.install()


def test_the_first_row_that_was_changed_is_named(told_story, eve):
    later = trail(told_story)[4]
    for row, change in (
        (later, {"at": later.at + timedelta(microseconds=1)}),
        (told_story.decisions.get(reason="no"), {"reason": "yes"}),
        (told_story.decisions.get(reason="one more"), {"by": eve}),
        (told_story.decisions.get(reason="one more"), {"payload": "{}"}),
        (told_story.decisions.exclude(seen="").get(), {"seen": "{}"}),
        (told_story.activities.get(kind="commented"), {"text": "No."}),
        (told_story.activities.get(kind="undone"), {"decision": None}),
    ):
        before = {name: getattr(row, name) for name in change}
        altered(row, **change)
        assert f"row {row.seq} of" in first_break(told_story)
        altered(row, **before)
    assert first_break(told_story) is None


def test_a_row_that_was_removed_is_named(told_story):
    from runs.engine import triggers

    triggers.remove()
    told_story.activities.get(kind="commented").delete()
    assert "row 3 of" in first_break(told_story)


def test_a_last_row_that_was_removed_is_noticed(told_story):
    from runs.engine import triggers

    triggers.remove()
    last = told_story.decisions.get(reason="no")
    Approval.objects.filter(pk=told_story.pk).update(conclusion=None)
    last.delete()
    assert "last row" in first_break(told_story)


@pytest.mark.parametrize("rows", [Decision, Activity])
def test_the_database_lets_no_row_be_changed_or_removed(told_story, rows):
    for act in (
        lambda: rows.objects.update(revision=1),
        lambda: rows.objects.filter(seq__gte=0)._raw_delete("default"),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()
    assert first_break(told_story) is None


def test_no_decision_row_without_a_person(told_story):
    """A3: the database says so, whoever inserts."""
    row = told_story.decisions.first()
    row.pk, row.by, row.seq, row.operation_id = None, None, 99, "another"
    with pytest.raises(DatabaseError), transaction.atomic():
        row.save(force_insert=True)
