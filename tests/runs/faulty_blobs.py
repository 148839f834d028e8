"""What writes, passes on, collects and erases blobs, each with the rows it needs; killed in test_blob_collection.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

from runs import Graph, start
from runs.core import codec
from runs.engine import blobs, clock, sweeping
from runs.models import Blob, BlobUse, Checkpoint, Run, Tombstone
from tests.runs.states import Log

Made = tuple[Any, Callable[[], Any]]
VERBS: dict[str, Callable[[], Made]] = {}
LIMIT = 1_000_000
_numbers = count(1)

plain = Graph("fault-blobs", state=Log, operators="ops")


@plain.node
def only(run: Any, state: Log) -> None:
    state.log.append("done")


def verb(make: Callable[[], Made]) -> Callable[[], Made]:
    VERBS[make.__name__] = make
    return make


def content() -> bytes:
    return f"content {next(_numbers)} at {clock.now().timestamp()}".encode()


def shape(subject: str) -> Any:
    """What a verb may change of the run and its blob, without ids and times. The subject is both: "run sha256"."""
    run_id, sha256 = subject.split()
    run = Run.objects.get(pk=run_id)
    stone = Tombstone.objects.filter(run=run).first()
    return (
        BlobUse.objects.filter(run=run).count(),
        Blob.objects.filter(pk=sha256).exists(),
        list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("body", "reason")),
        run.labels,
        stone and stone.erased_at is not None,
    )


@verb
def put_what_is_new() -> Made:
    run, stored = start(plain, {}), content()
    return f"{run.pk} {codec.digest(stored)}", lambda: blobs.put(run.pk, stored, "text/plain", LIMIT)


@verb
def put_what_is_there() -> Made:
    run, stored = start(plain, {}), content()
    blobs.put(start(plain, {}).pk, stored, "text/plain", LIMIT)
    return f"{run.pk} {codec.digest(stored)}", lambda: blobs.put(run.pk, stored, "text/plain", LIMIT)


@verb
def pass_one_on() -> Made:
    owner, run = start(plain, {}), start(plain, {})
    ref = blobs.put(owner.pk, content(), "text/plain", LIMIT)
    text = codec.encode({"file": codec.flatten(ref)})
    return f"{run.pk} {ref.sha256}", lambda: blobs.share(owner.pk, run.pk, text)


@verb
def collect_what_is_left() -> Made:
    run = start(plain, {})
    sha256 = blobs.put(run.pk, content(), "text/plain", LIMIT).sha256
    BlobUse.objects.filter(run=run).delete()
    clock.AHEAD += timedelta(days=2)
    return f"{run.pk} {sha256}", lambda: sweeping.collect(sha256)


@verb
def erase_a_run() -> Made:
    run = start(plain, {"log": ["a"]}, labels={"title": "t"})
    sha256 = blobs.put(run.pk, content(), "text/plain", LIMIT).sha256
    run.cancel("ada", "not needed")
    return f"{run.pk} {sha256}", lambda: run.erase("asked for", "olga")


@verb
def erase_a_family() -> Made:
    top = start(plain, {"log": ["a"]}, labels={"title": "t"})
    child = start(plain, {"log": ["b"]})
    Run.objects.filter(pk=child.pk).update(parent=top, root=top.pk, depth=1)
    sha256 = blobs.put(child.pk, content(), "text/plain", LIMIT).sha256
    child.cancel("ada", "not needed")
    top.cancel("ada", "not needed")
    return f"{child.pk} {sha256}", lambda: top.erase("asked for", "olga")
