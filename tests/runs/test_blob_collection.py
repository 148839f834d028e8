"""Blobs that nobody refers to are collected, and never one that somebody does, or is about to."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.management import call_command
from django.db import connection, transaction

from runs import blob_holders, chores, start
from runs.core import codec
from runs.engine import blobs, boundaries, clock, sweeping
from runs.models import Blob, BlobUse, Remark, Run
from runs.testing import in_child, kill_at_statements, moved_clock
from tests.amounts import THOROUGH, dice
from tests.at_once import at_once
from tests.runs.disturbing import commits_of, where_to_kill
from tests.runs.driving import registered
from tests.runs.faulty_blobs import VERBS, plain, shape

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 1_000_000


@pytest.fixture(autouse=True)
def known():
    with registered(plain):
        yield


def let_go(run: Run, sha256: str) -> None:
    with transaction.atomic():
        BlobUse.objects.filter(run=run, blob=sha256).delete()
        Blob.objects.let_go([sha256], clock.now())


def file_of(blob: Blob) -> bool:
    return storages["default"].exists(blob.storage_name)


def test_a_blob_goes_a_day_after_its_last_use_and_its_file_with_it():
    with moved_clock() as moved:
        one, two = start(plain, {}), start(plain, {})
        sha = blobs.put(one.pk, b"shared", "text/plain", LIMIT).sha256
        blobs.put(two.pk, b"shared", "text/plain", LIMIT)
        blob = Blob.objects.get(pk=sha)
        let_go(one, sha)
        moved.move(timedelta(days=1, minutes=1))
        chores.do_due()
        blob.refresh_from_db()
        assert blob.sweep_at is None and file_of(blob), "another run uses it"
        let_go(two, sha)
        chores.do_due()
        assert file_of(blob), "its day is not over"
        moved.move(timedelta(days=1, minutes=1))
        chores.do_due()
    assert not Blob.objects.filter(pk=sha).exists() and not file_of(blob)


def test_what_another_apps_row_names_is_not_collected(monkeypatch):
    monkeypatch.setattr(blob_holders, "_holders", {})
    blob_holders.also(blob_holders.Holder("remarks", lambda: Remark.objects.filter(kind="holds"), "body"))
    with moved_clock() as moved:
        run = start(plain, {})
        sha = blobs.put(run.pk, b"named", "text/plain", LIMIT).sha256
        Remark.objects.create(run=run, kind="holds", fence=0, body=sha, at=clock.now())
        let_go(run, sha)
        moved.move(timedelta(days=3))
        assert sweeping.sweep_rows() == 0 and not sweeping.collect(sha)
        blob_holders._holders.clear()
        assert sweeping.sweep_rows() == 1


def test_a_writer_that_has_not_committed_holds_the_collector_off():
    """By the lock of its row: the collector waits, and then finds the blob touched."""
    with moved_clock() as moved:
        run, other = start(plain, {}), start(plain, {})
        for number in range(12):
            content = f"raced {number}".encode()
            sha = blobs.put(run.pk, content, "text/plain", LIMIT).sha256
            let_go(run, sha)
            moved.move(timedelta(days=2))
            ends = at_once(
                lambda: sweeping.collect(sha),  # noqa: B023 - done before the next one
                lambda: blobs.put(other.pk, content, "text/plain", LIMIT),  # noqa: B023
                lambda: blobs.put(other.pk, content, "text/plain", LIMIT),  # noqa: B023
            )
            assert not any(isinstance(end, Exception) for end in ends), ends
            assert blobs.read(other.pk, sha) == content


def test_what_is_shared_with_another_run_is_touched_for_it():
    with moved_clock() as moved:
        one, two = start(plain, {}), start(plain, {})
        ref = blobs.put(one.pk, b"passed on", "text/plain", LIMIT)
        moved.move(timedelta(days=2))
        blobs.share(one.pk, two.pk, codec.encode({"file": codec.flatten(ref)}))
        let_go(one, ref.sha256)
        BlobUse.objects.filter(run=two).delete()
        assert not sweeping.collect(ref.sha256), "it was wanted a moment ago"


def test_files_that_no_row_names_are_swept_when_they_are_old_and_others_are_left_alone():
    storage = storages["default"]
    run = start(plain, {})
    ref = blobs.put(run.pk, b"in use", "text/plain", LIMIT)
    used = Blob.objects.get(pk=ref.sha256)
    left, young = f"ab/{'ab' * 32}-00000001", f"ab/{'ab' * 32}-00000002"
    foreign = "ab/somebody-elses"
    for name in (left, young, foreign):
        assert storage.save(name, io.BytesIO(b"x")) == name
    old = (clock.now() - timedelta(days=3)).timestamp()
    for name in (left, foreign, used.storage_name):
        os.utime(storage.path(name), (old, old))
    out = io.StringIO()
    call_command("sweep", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {"blobs": 0, "files": 1}
    assert [storage.exists(name) for name in (left, young, foreign, used.storage_name)] == [
        False,
        True,
        True,
        True,
    ]
    for name in (young, foreign):
        storage.delete(name)


def test_a_kill_at_any_statement_leaves_each_used_blob_readable_and_the_next_sweep_takes_the_rest():
    """E15: of a writer, of one that passes a blob on, of the collector and of an erasure."""
    for name, prepare in VERBS.items():
        seen = []
        commits = commits_of(prepare)
        if not THOROUGH:
            commits = dice(f"commits {name}").sample(commits, min(2, len(commits)))

        def check(subject, where, name=name, seen=seen):
            seen.append(shape(subject))
            for use in BlobUse.objects.select_related("blob"):
                assert blobs.read(use.run_id, use.blob_id), f"{name}, {where}"

        assert kill_at_statements(prepare, check, where_to_kill(name, commits)) >= 2
        assert seen[0] != seen[-1], name


def test_a_kill_between_a_blobs_row_and_its_file_leaves_what_the_sweep_collects():
    """E15: a writer's file before its row, and a collector's row before its file."""
    storage = storages["default"]
    run = start(plain, {})
    kept = blobs.put(run.pk, b"kept", "text/plain", LIMIT)
    gone = blobs.put(run.pk, b"let go", "text/plain", LIMIT)
    let_go(run, gone.sha256)
    with moved_clock() as moved:
        moved.move(timedelta(days=3))
        sweeping.sweep_files()  # what other tests have left
        assert killed_at("blob's rows", lambda: blobs.put(run.pk, b"never recorded", "text/plain", LIMIT))
        assert killed_at("blob's row gone", lambda: sweeping.collect(gone.sha256))
        assert list(Blob.objects.values_list("sha256", flat=True)) == [kept.sha256]
        assert sweeping.sweep_files() == 2
        assert not [name for name in sweeping._files(storage) if kept.sha256 not in name]
        assert blobs.read(run.pk, kept.sha256) == b"kept"


def killed_at(name: str, act: Callable[[], Any]) -> bool:
    """Whether a process that does it came to that boundary, where it was killed."""

    def die(at: str) -> None:
        if at == name:
            os.kill(os.getpid(), signal.SIGKILL)

    def work(_tell: Callable[[Any], None]) -> None:
        boundaries.on_boundary = die
        act()

    return in_child(work).killed


@pytest.mark.postgres_only
def test_a_use_that_commits_while_the_collector_waits_is_seen_by_the_database_itself():
    """A row that names the blob without having touched it: the foreign key refuses the DELETE."""
    with moved_clock() as moved:
        run, other = start(plain, {}), start(plain, {})
        sha = blobs.put(run.pk, b"named late", "text/plain", LIMIT).sha256
        let_go(run, sha)
        moved.move(timedelta(days=2))
        assert connection.vendor == "postgresql"
        ends = at_once(
            lambda: BlobUse.objects.create(run=other, blob_id=sha) and True, lambda: sweeping.collect(sha)
        )
        assert ends[1] is False or isinstance(ends[0], Exception)
        assert BlobUse.objects.filter(blob=sha).exists() == Blob.objects.filter(pk=sha).exists()
