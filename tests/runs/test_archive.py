"""Archived runs: what is moved, that all of it is read as before, what may not go there, and what triggers let pass."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from difflib import unified_diff

import pytest
from django.core.exceptions import FieldError
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs import Graph, chores, start
from runs.engine import archive_rounds, archiving, clock, sweeping
from runs.engine.keeping import hold
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import (
    Archival,
    ArchivedCheckpoint,
    ArchiveRound,
    BlobUse,
    Checkpoint,
    LedgerEntry,
    Remark,
    Run,
    Signal,
)
from runs.models.archived import COLD, COLD_TABLES, columns, everywhere
from runs.testing import go_on, moved_clock
from runs.testing.rows import all_rows
from tests.runs import storied
from tests.runs.driving import drive, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered(storied.leaf, storied.story):
        yield


@pytest.fixture
def ended(ada) -> Run:
    return storied.told(ada)


def told(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def all_that_is_read(run: Run, client) -> dict[str, str]:
    """Every page and command that tells of a family, without what says that it is archived."""
    found = {}

    def page(address: str) -> None:
        response = client.get(address)
        assert response.status_code == 200, address
        text = re.sub(
            r'nonce="[^"]+"|(csrf-token" content|value)="\w{64}"|data-(now|read)="[^"]+"|until=[^&"]+',
            "",
            response.text,
        )
        found[address] = re.sub(
            r'<section class="banner" aria-labelledby="archived-title">.*?</section>', "", text, flags=re.S
        )

    page(reverse("runs:list"))
    page(f"{reverse('runs:list')}?text=story&status=failed")
    for one in Run.objects.filter(root=run.pk):
        page(one.get_absolute_url())
        page(reverse("runs:live", args=[one.pk]))
        for seq in range(one.seq + 1):
            if one == run and seq % 6 == 1:
                page(f"{one.get_absolute_url()}?at={seq}&against=0&entry={one.entries.first().pk}")
            found[f"state of {one.pk} at {seq}"] = str(one.state_at(seq))
        for use in BlobUse.objects.filter(run=one):
            page(reverse("runs:blob", args=[one.pk, use.blob_id]))
        for approval in one.approvals.all():
            page(approval.get_absolute_url())
        shown = json.loads(told("show", str(one.pk), "--json"))
        found[f"show {one.pk}"] = json.dumps(shown | {"archived": None}, indent=1)
        found[f"show {one.pk} in words"] = re.sub("  in the archive since .*", "", told("show", str(one.pk)))
        assert first_bad_row(one) is None
    found["list"] = told("list", "--json")
    found["verify"] = told("verify", "--json")
    return found


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Lines that differ, so that a failure says which."""
    return [
        f"{name}: {line}"
        for name in before.keys() | after.keys()
        for line in unified_diff(lines(before.get(name, "")), lines(after.get(name, "")), n=0, lineterm="")
    ]


@pytest.mark.smoke  # it stands on a name of Django that is not documented
def test_an_archived_family_is_out_of_the_hot_tables_and_reads_as_it_did_before(ended, client, ada):
    """Every page, command, state and blob of it, one by one."""
    client.force_login(ada)
    with moved_clock() as moved:
        moved.move(timedelta(days=40, hours=12))  # what is told as an age stays the same for a while
        before = all_that_is_read(ended, client)
        assert len(before) > 40
        archival = ended.children.first().archive("it is long over", "olga")
        assert sweeping.sweep_rows() == 0, "what it uses is used"
        after = all_that_is_read(ended, client)
        page = client.get(ended.get_absolute_url()).text
    assert changed(before, after) == []
    assert "In the archive" in page and "it is long over" in page and "olga" in page
    assert archival.run_id == ended.pk and archival.archived_at is not None and archival.go_on_at is None
    family = list(Run.objects.filter(root=ended.pk))
    assert len(family) == 4 and all(one.archived and one.archived_at is not None for one in family)
    assert Archival.objects.filter(run__in=family, archived_at__isnull=False, head__gt="").count() == 4
    for hot in (Checkpoint, Remark, Signal):
        assert not hot.objects.filter(run__in=family).exists()
    asked = LedgerEntry.objects.filter(run__in=family).order_by("pk")
    assert list(asked.values_list("key", flat=True)) == [
        "storied-leaf:3648148c#1",  # its children have their places in the fan-out
        "pay:{run_id}?",
        "last:{run_id}?",
    ]
    assert COLD[LedgerEntry].objects.filter(run=ended).count() > 5


def test_the_command_archives_one_family_or_all_that_are_old_and_says_what_it_left(ended, ada):
    with pytest.raises(CommandError, match="either a run or --older-than"):
        call_command("archive", "--reason", "over")
    with pytest.raises(CommandError, match="--older-than is -1: write a number of days"):
        call_command("archive", "--older-than", "-1", "--reason", "over")
    with pytest.raises(CommandError, match="Say why"):
        call_command("archive", ended.short_id, "--reason", " ")
    line = json.loads(told("archive", ended.short_id, "--reason", "over", "--by", "ada", "--json"))
    assert line["runs"] == 4 and line["by"].startswith("user ada (shell of ") and line["id"] == str(ended.pk)
    assert json.loads(told("show", ended.short_id, "--json"))["archived"]["reason"] == "over"
    assert "in the archive since" in told("show", ended.short_id)

    kept = go_on(start(storied.leaf, {"log": []}), storied.leaf)
    kept.keep("a court asked for it", "olga")
    assert (
        told("archive", "--older-than", "3", "--reason", "over")
        == "0 families archived, 0 left as they are\n"
    )
    said = json.loads(told("archive", "--older-than", "0", "--reason", "over", "--json"))
    assert said == {"archived": 1, "left": 1} and not Run.objects.get(pk=kept.pk).archived


def test_what_may_not_be_archived_is_named_and_nothing_of_it_is_moved(ended):
    with pytest.raises(Invalid, match="Say why"):
        ended.archive(" ", "olga")
    ended.keep("a court asked for it", "olga")
    with pytest.raises(Conflict, match="is kept"):
        ended.archive("over", "olga")
    ended.release_keep("the court is done", "olga")
    alive = start(storied.leaf, {"log": []})
    with pytest.raises(Conflict, match="is created, and not done with"):
        alive.archive("over", "olga")
    child = ended.children.first()
    Run.objects.filter(pk=child.pk).update(status="failed", error_kind="permanent")
    with pytest.raises(Conflict, match=f"{child.short_id} of the family has failed and may be repaired"):
        ended.archive("over", "olga")
    Run.objects.filter(pk=child.pk).update(closed_at=clock.now())
    entry = ended.hot_entries.filter(kind="effect").first()
    LedgerEntry.objects.filter(pk=entry.pk).update(status="in_doubt")
    with pytest.raises(Conflict, match="is in doubt; settle it first"):
        ended.archive("over", "olga")
    LedgerEntry.objects.filter(pk=entry.pk).update(status=entry.status)
    assert not Archival.objects.exists() and not any(cold.objects.exists() for cold in COLD.values())
    ended.erase("asked for", "olga")
    with pytest.raises(Conflict, match="is erased"):
        ended.archive("over", "olga")


def test_one_that_came_back_at_the_moment_of_the_intent_stays_and_is_archived_after_its_end(monkeypatch):
    """A child that is repaired, and a family that is archived, each under a lock of its own."""
    top, child = (go_on(start(storied.leaf, {"log": []}), storied.leaf) for _ in range(2))
    Run.objects.filter(pk=child.pk).update(
        parent=top, root=top.pk, depth=1, status="running", wake_at=clock.now()
    )
    go_on(start(storied.leaf, {"log": []}), storied.leaf)
    monkeypatch.setattr(archiving, "_refuse", lambda top, ended_by: None)
    archival = top.archive("over", "olga")
    assert archival.archived_at is None and archival.go_on_at > clock.now()
    assert child.hot_checkpoints.count() == 3 and not Archival.objects.filter(run=child).exists()
    Run.objects.filter(pk=child.pk).update(status="completed", wake_at=None)
    with moved_clock() as moved:
        moved.move(archiving.LATER)
        chores.do_due()
    assert not Archival.objects.under_way().exists() and Archival.objects.count() == 2
    assert [first_bad_row(run) for run in (top, child)] == [None, None]


def test_nothing_brings_an_archived_run_back_and_nothing_is_added_to_it(ended, ada):
    archival = ended.archive("over", "olga")
    assert ended.archive("again", "bob") == archival and ended.archived
    for verb in (ended.retry, ended.cancel, ended.close):
        with pytest.raises(Conflict, match="archived"):
            verb(by="olga", reason="once more")
    with pytest.raises(DatabaseError, match="is archived"), transaction.atomic():
        Run.objects.filter(pk=ended.pk).update(status="running", wake_at=clock.now())
    assert ended.signal("stop", {"why": "nobody reads it"}, key="unread", by="shop").name == "stop"
    with pytest.raises(Conflict, match="takes no signals"):
        ended.signal("stop", {"why": "another"}, key="new", by="shop")
    assert start(storied.story, {"log": ["begun"]}, key="story:1") == ended
    with pytest.raises(Conflict):
        start(storied.story, {"log": ["another"]}, key="story:1")
    first_undone = ended.entries.filter(status="compensated").order_by("step")[0]
    for seq in ended.checkpoints.filter(step__lt=first_undone.step).values_list("seq", flat=True):
        made = ended.fork("olga", "look at it", seq)
        assert (made.state_at(), first_bad_row(made)) == (ended.state_at(seq), None)
    with pytest.raises(Conflict, match="was undone"):
        ended.fork("olga", "look at it")
    kept = ended.keep("a court asked for it", "olga")
    assert hold(ended) == kept
    with pytest.raises(Conflict, match="is kept"):
        ended.erase("asked for", "olga")


def test_an_archived_family_that_is_erased_leaves_not_a_word_in_the_archive_either(ended):
    ended.archive("over", "olga")
    words = ("only 20", "nobody reads it", "paid twice", "begun", "paid back")
    assert all(word in str(all_rows()) for word in words)
    digests = list(ended.checkpoints.order_by("seq").values_list("digest", flat=True))
    stone = ended.erase("asked for by its customer", "olga")
    assert stone.erased_at is not None and first_bad_row(ended) is None
    assert [(word, name) for name, rows in all_rows().items() for word in words if word in str(rows)] == []
    assert list(ended.checkpoints.order_by("seq").values_list("digest", flat=True)) == digests
    assert json.loads(told("verify", "--json"))["erased"] == 4


def test_triggers_let_only_the_move_pass_and_only_while_it_goes_on(ended):
    checkpoint = ended.hot_checkpoints.first()
    names = columns(Checkpoint)
    row = Checkpoint.objects.filter(pk=checkpoint.pk).values_list(*names).get()
    like = dict(zip((field.attname for field in Checkpoint._meta.local_concrete_fields), row, strict=True))

    def refused(act, *, match: str = "append-only|only what is moved") -> None:
        with pytest.raises(DatabaseError, match=match), transaction.atomic():
            act()

    def deleted(rows) -> None:
        rows._raw_delete(rows.db)

    everything = [hot.objects.filter(run=ended) for hot in COLD]
    for rows in everything:
        refused(lambda rows=rows: deleted(rows))
    refused(lambda: ArchivedCheckpoint.objects.create(**like))
    archival = Archival.objects.create(run=ended, by="x", reason="y", at=clock.now(), head=ended.head)
    for rows in everything:
        refused(lambda rows=rows: deleted(rows))  # not there yet
    refused(lambda: ArchivedCheckpoint.objects.create(**like | {"node": "another"}))
    refused(lambda: ArchivedCheckpoint.objects.create(**like | {"id": 10**9}))
    ArchivedCheckpoint.objects.create(**like)
    refused(lambda: ArchivedCheckpoint.objects.filter(pk=checkpoint.pk).update(body=""))
    refused(lambda: deleted(ArchivedCheckpoint.objects.all()))
    deleted(Checkpoint.objects.filter(pk=checkpoint.pk))
    Archival.objects.filter(pk=archival.pk).update(archived_at=clock.now())
    refused(lambda: Archival.objects.filter(pk=archival.pk).update(archived_at=None))
    refused(lambda: Archival.objects.filter(pk=archival.pk).update(reason="another"))
    refused(lambda: deleted(Archival.objects.all()))
    other = ended.hot_checkpoints.values(*like).first()
    refused(lambda: ArchivedCheckpoint.objects.create(**other))


def test_a_key_that_a_run_took_to_the_archive_is_not_given_again(ended):
    """By the database itself; and the next run that asks for it is told who has it."""
    entry = ended.entries.get(key="storied pays once")
    ended.archive("over", "olga")
    row = {"step": 1, "key": "k", "kind": "effect", "name": "pay", "request": "{}", "opened_at": clock.now()}
    other = start(storied.leaf, {"log": []})
    with pytest.raises(IntegrityError), transaction.atomic():
        LedgerEntry.objects.create(run=other, idempotency_key=entry.idempotency_key, **row)
    once = Graph("storied-once", state=Log)

    @once.node
    def again(run, state):
        run.call(storied.pay, amount=5, key="storied pays once")

    with registered(once):
        second = start(once, {"log": []})
        drive(second)
    assert second.status == "failed" and f"belongs to run {ended.pk}" in second.error


def test_by_age_only_what_ended_long_ago_goes_and_what_may_not_go_holds_up_nothing(ended, settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {"archive_after_days": 90}
    archive_rounds.prepare()
    kept, failed = start(storied.leaf, {"log": []}), start(storied.leaf, {"log": []})
    for run in (kept, failed):
        go_on(run, storied.leaf)
    kept.keep("a court asked for it", "olga")
    Run.objects.filter(pk=failed.pk).update(status="failed", error_kind="permanent")
    with moved_clock() as moved:
        moved.move(timedelta(days=80))
        young = go_on(start(storied.leaf, {"log": []}), storied.leaf)
        chores.do_due()
        assert not Archival.objects.exists()
        moved.move(timedelta(days=11))
        chores.do_due()
        ended.refresh_from_db()
        assert ended.archived and Archival.objects.get(run=ended).by == archive_rounds.BY
        assert not any(Run.objects.get(pk=one.pk).archived for one in (kept, failed, young))
        Run.objects.filter(pk=failed.pk).update(closed_at=clock.now())
        moved.move(timedelta(hours=2))
        chores.do_due()
        assert Run.objects.get(pk=failed.pk).archived and not Run.objects.get(pk=kept.pk).archived
        assert not chores.are_due(clock.now())
    whole = Run.objects.exclude(pk=failed.pk)
    assert [first_bad_row(run) for run in whole] == [None] * len(whole)


def test_the_walk_takes_the_next_ones_where_it_stands(settings, monkeypatch):
    settings.DURABLEWEB = settings.DURABLEWEB | {"archive_after_days": 1}
    monkeypatch.setattr(archive_rounds, "AT_A_TIME", 2)
    archive_rounds.prepare()
    runs = [go_on(start(storied.leaf, {"log": []}), storied.leaf) for _ in range(5)]
    runs[0].keep("a court asked for it", "olga")
    Run.objects.filter(pk__in=[run.pk for run in runs[:3]]).update(finished_at=runs[0].finished_at)
    with moved_clock() as moved:
        moved.move(timedelta(days=2))
        here = ArchiveRound.objects.get()
        for begun in (1, 3, 4):
            archive_rounds.walk(here.pk)
            assert Archival.objects.count() == begun
    here.refresh_from_db()
    assert here.after_at is None and here.look_at > clock.now()


def test_of_an_old_installation_each_page_reads_by_index_and_no_hot_statement_reads_the_archive(
    ended, client, ada
):
    """Whatever is in the archive, one run's rows are found by an index of either table."""
    ended.archive("over", "olga")
    client.force_login(ada)
    pages = [ended.get_absolute_url(), f"{ended.get_absolute_url()}?at=3&against=1"]
    for address in pages:
        with CaptureQueriesContext(connection) as seen:
            client.get(address)
        reading = [
            query["sql"]
            for query in seen
            if "runs_archived" in query["sql"] and query["sql"].startswith("SELECT")
        ]
        assert len(reading) >= 3
        for statement in reading:
            assert not looked_through(statement), statement
    with CaptureQueriesContext(connection) as seen:
        alive = start(storied.leaf, {"log": []})
        drive(alive)
        client.get(reverse("runs:list") + "?status=completed")
        client.get("/")
        chores.do_due()
    assert [query["sql"] for query in seen if "runs_archived" in query["sql"]] == []


@pytest.mark.smoke  # it stands on a name of Django that is not documented
def test_what_may_be_in_the_archive_is_not_joined_by_mistake(ended):
    with pytest.raises(FieldError, match="may be in the archive"):
        ended.entries.select_related("decided_by").first()
    with pytest.raises(FieldError, match="may be in the archive"):
        ended.signals.filter(consumed_by__key="go#1").first()
    assert ended.signals.filter(consumed_by__in=ended.entries).count() == 1


@pytest.mark.smoke
@pytest.mark.parametrize("rows", [Checkpoint, LedgerEntry, Remark, Signal])
def test_rows_of_a_run_are_read_in_both_of_their_tables_by_this_django(rows):
    """A18: the door to the archive sets attributes of Django's Query that its documentation does not promise. Where a
    new Django has them under other names, archived runs would look empty: runs/models/archived.py says what is meant.
    """
    table = rows._meta.db_table
    for found in (everywhere(rows), everywhere(rows).filter(run_id=Run().pk).order_by("pk")[:5]):
        assert COLD_TABLES[table] in str(found.query) and f'"{table}"' in str(found.query), str(found.query)
    inner = everywhere(rows).filter(run_id=Run().pk)
    assert COLD_TABLES[table] in str(Run.objects.filter(pk__in=inner.values("run")).query)
    assert not inner.exists() and not inner.count() and list(inner) == []


def looked_through(statement: str) -> list[str]:
    """The tables of rows that the database would read from end to end for it."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")  # of a handful of rows it would read all, by choice
            cursor.execute(f"EXPLAIN {statement}")
            plan = [row[0] for row in cursor.fetchall()]
            cursor.execute("RESET enable_seqscan")
            return [line for line in plan if "Seq Scan on runs_" in line]
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        plan = [row[3] for row in cursor.fetchall()]
    read = [line.split()[1] for line in plan if line.startswith("SCAN runs_")]
    for line in plan:
        if line.startswith(("CO-ROUTINE", "MATERIALIZE")) and line.split()[1] in read:
            read.remove(line.split()[1])  # what both tables gave, under the name of the hot one
    return read
