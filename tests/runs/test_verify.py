"""The verifier names the first row that was changed, removed or moved, and finds no fault in what the engine wrote."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pydantic import BaseModel

from runs import Ask, Graph, start, tool
from runs.conf import conf
from runs.core import ledger
from runs.engine import boundaries, triggers, verify
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.ledger import RowLedger
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Run
from runs.testing import drive, go_on, moved_clock
from runs.testing.driving import answer

pytestmark = pytest.mark.django_db


class Log(BaseModel):
    log: list[str] = []


@tool
def read(text: str) -> str:
    return text * 50_000


@tool(kind="write")
def post(text: str) -> str:
    return f"posted {text}"


errand = Graph("verified-errand", state=Log, operators="ops")


@errand.node(then="send")
def look(run, state):
    state.log.append(run.call(read, text="x")[:3])


@errand.node
def send(run, state):
    ask = Ask("Post it?", due=timedelta(hours=1))
    answers = run.gather(Ask("One?", name="one"), Ask("Two?", name="two", due=timedelta(hours=2)))
    state.log += [answer.verdict for answer in answers]
    state.log.append(run.call(post, key="post:{run_id}", text="a", approve=ask))


ANSWERS = {name: {"verdict": "approve", "by": "ada"} for name in ("one", "two", "post:{run_id}?")}


@pytest.fixture
def unlocked():
    """The triggers are gone, as for someone who may write to the database."""
    triggers.remove()
    with connection.cursor() as cursor:
        on = f" ON {LedgerEntry._meta.db_table}" if connection.vendor == "postgresql" else ""
        for name in (triggers.GATE, triggers.FINAL):
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
    yield
    triggers.install()


@pytest.fixture
def ended(unlocked) -> Run:
    return drive(errand, {}, ANSWERS)


def test_nothing_is_wrong_with_what_the_engine_wrote(ended):
    assert ended.status == "completed"
    assert first_bad_row(ended) is None


def test_nothing_is_wrong_at_any_moment_of_a_run():
    faults = []

    def look(name):
        for run in Run.objects.filter(graph=errand.name):
            faults.append(first_bad_row(run))

    boundaries.on_boundary = look
    try:
        drive(errand, {}, ANSWERS)
    finally:
        boundaries.on_boundary = None
    assert len(faults) > 40
    assert set(faults) == {None}


def test_an_answer_undone_after_its_worker_died_breaks_nothing():
    """S13: what a lost claim left is covered, an answer that nobody has taken is not."""
    with moved_clock() as moved:
        run = start(errand, {})
        lost, _ = Claimer("w1", [errand]).claim(alone=True, only=run.pk)
        lost.commit_step("send", {"log": ["xxx"]})
        RowLedger(lost, []).ask(ledger.question(Ask("One?", name="one"), "one", None), None)
        entry = LedgerEntry.objects.get(run=run)
        answer(run, entry, entry.request_value(), {"verdict": "approve"})
        moved.move(conf.lease_seconds + 1)
        assert isinstance(Claimer("w2", [errand])._take(True, run.pk, False), Run), (
            "the lost claim is recovered"
        )
        with transaction.atomic():
            locked, now = Run.objects.lock(run.pk)
            LedgerEntry.objects.get(pk=entry.pk).reopen(locked, now)
        assert first_bad_row(Run.objects.get(pk=run.pk)) is None


def test_what_a_person_settled_is_covered_by_the_next_claim(monkeypatch):
    with moved_clock() as moved:
        graph = Graph("verified-doubt", state=Log, operators="ops")

        @graph.node
        def call(run, state):
            state.log.append(run.call(post, text="a"))

        run = start(graph, {})
        held = Drive(*Claimer("w1", [graph]).claim(alone=True, only=run.pk))
        monkeypatch.setattr("runs.engine.ledger.RowLedger.record", die)
        with pytest.raises(KeyboardInterrupt):
            held.run()
        monkeypatch.undo()
        moved.move(conf.lease_seconds + 1)

        def settle(entry, request):
            return {"verdict": "respond", "payload": {"outcome": "happened", "result": "posted a"}}

        run = go_on(run, graph, settle)
        assert run.status == "completed"
        assert first_bad_row(run) is None
        wake = Checkpoint.objects.filter(run=run, kind="wake").latest("seq")
        assert '"done"' in wake.entries


def die(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", "[]"),
        ("reason", "another"),
        ("actor", "mallory"),
        ("node", "look"),
        ("attempt", 7),
        ("entries", "[]"),
        ("body_digest", "0" * 64),
        ("salt", b"0" * 16),
        ("digest", "0" * 64),
    ],
)
def test_a_changed_checkpoint_is_named(ended, column, value):
    row = Checkpoint.objects.filter(run=ended, kind="complete").get()
    Checkpoint.objects.filter(pk=row.pk).update(**{column: value})
    assert f"Checkpoint {row.seq} (complete" in first_bad_row(ended)


def test_the_first_of_several_changed_checkpoints_is_named(ended):
    Checkpoint.objects.filter(run=ended, seq__in=(2, 4)).update(reason="another")
    assert "Checkpoint 2 (" in first_bad_row(ended)


def test_a_removed_checkpoint_is_named(ended):
    Checkpoint.objects.filter(run=ended, seq=3).delete()
    assert first_bad_row(ended) == "Checkpoint 3 is missing: checkpoint 4 follows 2."


def test_a_cut_end_is_named(ended):
    last = ended.seq
    Checkpoint.objects.filter(run=ended, seq=last).delete()
    assert first_bad_row(ended).startswith(f"Checkpoint {last} is missing")


def test_swapped_checkpoints_are_named(ended):
    Checkpoint.objects.filter(run=ended, seq=2).update(seq=999)
    Checkpoint.objects.filter(run=ended, seq=3).update(seq=2)
    Checkpoint.objects.filter(run=ended, seq=999).update(seq=3)
    assert first_bad_row(ended).startswith("Checkpoint 2 (")


@pytest.mark.parametrize("change", [{"status": "failed"}, {"step": 1}, {"head": "0" * 64}, {"fence": 99}])
def test_a_changed_run_is_told(ended, change):
    Run.objects.filter(pk=ended.pk).update(**change)
    ended.refresh_from_db()
    assert first_bad_row(ended) is not None


@pytest.mark.parametrize(
    ("key", "change", "told"),
    [
        ("post:{run_id}", {"status": "failed"}, "status"),
        ("post:{run_id}", {"result": '"posted b"'}, "result"),
        ("post:{run_id}", {"request": '{"text":"b"}'}, "another request"),
        ("post:{run_id}?", {"answered_by": "bob"}, "answered by"),
        ("one", {"approval_head": "0" * 64}, "approval"),
    ],
)
def test_a_changed_ledger_entry_is_named(ended, key, change, told):
    LedgerEntry.objects.filter(run=ended, key=key).update(**change)
    bad = first_bad_row(ended)
    assert bad.startswith(f"Ledger entry {key!r} of step 2") and told in bad


def test_a_removed_ledger_entry_is_named(ended):
    LedgerEntry.objects.filter(run=ended, key="post:{run_id}").delete()
    assert first_bad_row(ended).startswith("Ledger entry 'post:{run_id}' of step 2 is missing")


def test_an_added_ledger_entry_is_named(ended):
    entry = LedgerEntry.objects.get(run=ended, key="one")
    entry.pk, entry.key = None, "three"
    entry.save(force_insert=True)
    assert first_bad_row(ended) == "Ledger entry 'three' of step 2 was added: no checkpoint names it."


def test_other_trails_are_verified_with_the_run(ended, monkeypatch):
    monkeypatch.setattr(verify, "_also", [lambda run: None, lambda run: "approval 7 was changed"])
    assert first_bad_row(ended) == "approval 7 was changed"


def test_the_command_verifies_all_runs_and_fails_on_a_fault(ended):
    drive(errand, {}, ANSWERS)
    assert told("verify") == "2 runs verified, 0 with a fault\n"
    assert json.loads(told("verify", ended.short_id, "--json")) == {"verified": 1, "erased": 0, "bad": {}}
    Checkpoint.objects.filter(run=ended, seq=1).update(reason="another")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("verify", "--json", stdout=out)
    assert "Checkpoint 1 (claim" in json.loads(out.getvalue())["bad"][str(ended.pk)]
    with pytest.raises(CommandError, match="no run"):
        call_command("verify", "00000000-0000-7000-8000-000000000000")


def told(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()
