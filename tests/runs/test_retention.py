"""Kept and erased runs: what goes, what remains, who may not be erased, and that no trigger lets anything else pass."""

from __future__ import annotations

import io
import json
import os
import signal
from datetime import timedelta
from itertools import count

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction

from approvals.chain import first_break
from approvals.files import Sent
from runs import Ask, Graph, Wait, chores, start, tool
from runs.core.errors import Permanent
from runs.engine import blobs, boundaries, clock, emptying, erasing
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import Blob, BlobUse, Checkpoint, LedgerEntry, Remark, Run, Signal, Tombstone
from runs.models.tombstone import ERASED
from runs.testing import go_on, in_child, moved_clock
from runs.testing.rows import all_rows
from tests.runs.driving import drive, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary-7b1f"


@tool(kind="write")
def post(text: str) -> str:
    return f"posted {text}"


child = Graph("erased-child", state=Log, operators="ops")


@child.node
def tell(run, state):
    state.log.append(run.once("told", lambda: CANARY))


family = Graph("erased-family", state=Log, operators="ops", viewers="pm")


@family.node(then="end")
def ask(run, state):
    run.gather(Wait("go"), Ask(f"Really {CANARY}?", name="one", why=CANARY, payload=CANARY, reviewers="pm"))
    state.log += [end.status for end in run.join(run.start(child, {"log": [CANARY]}))]


@family.node
def end(run, state):
    state.log.append(run.call(post, text=CANARY * 4_000))
    raise Permanent(f"no more {CANARY}")


@pytest.fixture(autouse=True)
def known():
    with registered(child, family):
        yield


@pytest.fixture
def ended(ada) -> Run:
    """A family of two that has ended, with an approval, a comment, a draft, a signal, a remark and a blob."""
    from approvals.models import Approval, KeptDraft

    run = start(family, {"log": [CANARY]}, by=ada, labels={"title": CANARY})
    said = {"verdict": "approve", "reason": CANARY, "by": "ada"}

    def decide(request):
        approval = Approval.objects.get(entry__run=run)
        approval.comment(ada, f"I think {CANARY}")
        KeptDraft.keep(approval, ada, comment=f"Or {CANARY}")
        return said

    go_on(run, family, {"one": decide, "go#1": {"payload": CANARY}})
    run.refresh_from_db()
    assert run.status == "failed" and CANARY in run.error and BlobUse.objects.filter(run=run).exists()
    entry = run.entries.first()
    Remark.objects.create(
        run=run, entry=entry, kind="late_result", worker="w", fence=1, body=CANARY, at=clock.now()
    )
    return run


def told(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def test_an_erased_family_leaves_digests_and_a_tombstone_and_not_a_word_of_what_it_was_about(
    ended, client, ada
):
    """In the whole database, its blobs included; and the chain still verifies, the page says what happened."""
    assert CANARY in str(all_rows())
    heads = dict(Run.objects.filter(root=ended.pk).values_list("pk", "head"))
    digests = list(
        Checkpoint.objects.filter(run__root=ended.pk).order_by("pk").values_list("digest", flat=True)
    )
    stone = ended.children.get().erase("asked for by its customer", "olga")

    assert (stone.run_id, stone.by, stone.reason) == (ended.pk, "olga", "asked for by its customer")
    assert stone.erased_at is not None and stone.go_on_at is None
    found = [(table, row) for table, rows in all_rows().items() for row in rows if CANARY in str(row)]
    assert found == []
    assert dict(Run.objects.filter(root=ended.pk).values_list("pk", "head")) == heads
    left = Checkpoint.objects.filter(run__root=ended.pk).order_by("pk")
    assert list(left.values_list("digest", flat=True)) == digests
    assert {one.erased_at is not None for one in Tombstone.objects.all()} == {True}
    assert Tombstone.objects.count() == 2 and not BlobUse.objects.filter(run__root=ended.pk).exists()
    assert ended.erase("again", "bob") == stone
    assert json.loads(told("verify", "--json")) == {"verified": 2, "erased": 2, "bad": {}}

    client.force_login(ada)
    page = client.get(ended.get_absolute_url())
    assert page.status_code == 200
    assert "asked for by its customer" in page.text and "olga" in page.text
    approval = ended.approvals.get()
    assert client.get(approval.get_absolute_url()).headers["Location"] == ended.get_absolute_url()
    with pytest.raises(Conflict, match="erased"):
        approval.comment(ada, "One more thing")
    with pytest.raises(DatabaseError, match="erased"):
        blobs.touch(ended.pk, "0" * 64) or BlobUse.objects.create(run=ended, blob_id="0" * 64)


def test_what_remains_of_an_erased_run_is_held_by_its_tombstone(ended):
    """Also the links that cannot be computed again, for their reasons are gone."""
    ended.erase("asked for", "olga")
    assert first_bad_row(ended) is None
    LedgerEntry.objects.filter(run=ended, kind="effect").update(answered_by="somebody else")
    assert "tombstone" in first_bad_row(ended)


def test_triggers_let_only_the_erasure_pass_and_only_while_it_goes_on(ended):
    def refused(rows, **changes):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(**changes)

    of_it = {"run": ended}
    refused(Checkpoint.objects.filter(**of_it), body="", salt=b"")
    refused(LedgerEntry.objects.filter(**of_it), request="")
    refused(Signal.objects.filter(**of_it), payload="")
    stone = Tombstone.objects.create(run=ended, by="x", reason="y", at=clock.now(), head=ended.head)
    refused(Checkpoint.objects.filter(**of_it), body="another")
    refused(Checkpoint.objects.filter(**of_it), reason="another")
    refused(Checkpoint.objects.filter(**of_it), body="", actor="another")
    refused(LedgerEntry.objects.filter(**of_it), request="{}")
    refused(LedgerEntry.objects.filter(**of_it), request="", request_digest="0" * 64)
    refused(Tombstone.objects.filter(pk=stone.pk), reason="another")
    refused(Run.objects.filter(pk=ended.pk), status="cancelled")
    with pytest.raises(DatabaseError), transaction.atomic():
        Checkpoint.objects.filter(**of_it).delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        Tombstone.objects.filter(pk=stone.pk).delete()
    Checkpoint.objects.filter(**of_it, seq=0).update(body="", salt=b"")
    Tombstone.objects.filter(pk=stone.pk).update(erased_at=clock.now(), rest="0" * 64)
    refused(Checkpoint.objects.filter(**of_it, seq=1), body="", salt=b"")
    refused(Tombstone.objects.filter(pk=stone.pk), erased_at=None, rest="")


def test_a_run_is_not_erased_while_it_is_kept_or_lives_or_is_in_doubt(ended):
    with pytest.raises(Invalid, match="Say why"):
        ended.erase(" ", "olga")
    kept = ended.children.get()
    kept.keep("a court asked for it", "olga")
    with pytest.raises(Conflict, match="kept already"):
        ended.keep("twice", "olga")
    with pytest.raises(Conflict, match="kept"):
        ended.erase("asked for", "olga")
    assert [(one.kind, one.worker, one.body) for one in Remark.objects.filter(run=ended, entry=None)] == [
        ("kept", "olga", "a court asked for it")
    ]
    told("keep", ended.short_id, "--reason", "the court is done", "--release")
    alive = start(child, {})
    with pytest.raises(Conflict, match="is created"):
        alive.erase("asked for", "olga")
    LedgerEntry.objects.filter(run=ended, kind="effect").update(status="in_doubt", result=None)
    with pytest.raises(Conflict, match="in doubt; settle it first"):
        ended.erase("asked for", "olga")
    assert not Tombstone.objects.exists()


def test_an_erasure_goes_on_in_small_transactions_wherever_it_was_left(ended, monkeypatch):
    """A long run holds no long transaction; a worker goes on with what its caller had no time for."""
    monkeypatch.setattr(erasing, "AT_A_TIME", 2)
    monkeypatch.setattr(emptying, "A_LOOK", 3)
    monkeypatch.setattr(erasing, "LONGEST_SECONDS", 0)
    with moved_clock() as moved:
        stone = ended.erase("asked for", "olga")
        assert stone.erased_at is None and CANARY in str(all_rows())
        assert first_bad_row(ended) is None, "one that is being erased verifies as well"
        monkeypatch.setattr(erasing, "LONGEST_SECONDS", 600)
        moved.move(timedelta(minutes=2))
        assert chores.do_due() >= 1
    stone.refresh_from_db()
    assert stone.erased_at is not None and CANARY not in str(all_rows())
    assert first_bad_row(ended) is None


def test_an_erasure_whose_processes_are_killed_goes_on_where_each_of_them_stopped(ended, monkeypatch):
    """E15: by SIGKILL, each after one small transaction more; nothing is begun anew, and nothing is left."""
    monkeypatch.setattr(erasing, "AT_A_TIME", 5)

    def work(_tell) -> None:
        commits = count()

        def die(at: str) -> None:
            if at == "erase some" and next(commits) == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        boundaries.on_boundary = die
        ended.erase("asked for", "olga")

    full = Checkpoint.objects.exclude(body="").count()
    left = [full]
    while in_child(work).killed:
        left.append(Checkpoint.objects.exclude(body="").count())
        assert first_bad_row(ended) is None and Tombstone.objects.filter(run=ended).exists()
    assert len(left) > 3 and left == sorted(left, reverse=True)
    assert Tombstone.objects.get(run=ended).erased_at is not None
    assert CANARY not in str(all_rows()) and first_bad_row(ended) is None


def test_the_commands_keep_and_erase_and_name_what_cannot_be(ended, ada):
    assert json.loads(told("keep", ended.short_id, "--reason", "court", "--json"))["kept"] is True
    with pytest.raises(CommandError, match="is kept"):
        call_command("erase", ended.short_id, "--reason", "asked for")
    told("keep", ended.short_id, "--reason", "done", "--release")
    line = json.loads(told("erase", ended.short_id, "--reason", "asked for", "--by", "ada", "--json"))
    assert line["runs"] == 2 and line["by"].startswith("user ada (shell of ")
    assert ERASED in set(Checkpoint.objects.filter(run=ended).values_list("reason", flat=True))


def test_an_erased_runs_approval_takes_neither_a_comment_nor_a_file(ended, ada):
    """Also of who saw it before the erasure, and sends what was written afterwards."""
    approval = ended.approvals.get()
    ended.erase("asked for", "olga")
    said, held = approval.activities.count(), Blob.objects.count()
    for text, files in (
        (f"One more {CANARY}", []),
        ("", [Sent("photo.txt", CANARY.encode())]),
        ("See this", [Sent("photo.txt", CANARY.encode())]),
    ):
        with pytest.raises(Conflict, match="erased together with its run"):
            approval.comment(ada, text, files)
    assert (approval.activities.count(), Blob.objects.count()) == (said, held)
    assert not approval.attachments.exists() and CANARY not in str(all_rows())
    assert first_break(approval) is None


@pytest.mark.parametrize("erased", [False, True])
def test_what_a_late_worker_brings_is_a_remark_and_nothing_where_the_run_was_erased(erased):
    """Its call comes back when the run was cancelled meanwhile, and perhaps erased."""
    late = Graph("erased-late", state=Log)

    @tool(kind="read")
    def slow(text: str) -> str:
        run = Run.objects.get(graph=late.name)
        run.cancel("olga", "too slow")
        if erased:
            run.erase("asked for", "olga")
        return f"late {CANARY}"

    @late.node
    def call(run, state):
        state.log.append(run.call(slow, text="x"))

    with registered(late):
        run = start(late, {"log": []}, key="order:7")
        drive(run)
        assert run.status == "cancelled"
        assert [one.kind for one in run.remarks.all()] == ([] if erased else ["late_result"])
        assert (CANARY in str(all_rows())) is not erased
        assert first_bad_row(run) is None


def test_the_key_that_an_erased_run_was_started_with_is_not_used_again():
    run = start(child, {"log": ["x"]}, key="order:7")
    go_on(run, child)
    assert start(child, {"log": ["x"]}, key="order:7") == run
    run.erase("asked for", "olga")
    for log in (["x"], ["another"]):
        with pytest.raises(Conflict, match=f"'order:7' belongs to run {run.pk}, which was erased"):
            start(child, {"log": log}, key="order:7")
    assert Run.objects.get() == run
