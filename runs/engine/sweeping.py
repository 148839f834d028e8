"""Collects what nobody refers to any more: blobs' rows first, in one conditional DELETE each, and their files after.

A blob that a run uses, or that a row of another app names (runs/blob_holders.py), stays. So does one that somebody
wanted within a day: a writer touches the row in the transaction that refers to it, and its lock holds the DELETE off,
which then finds it touched. Who is killed between row and file leaves a file that no row names; so does a writer that
is killed before its row. Such files are swept when they are two days old, long after any writer has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.core.files.storage import Storage, storages
from django.db import IntegrityError, transaction

from runs import chores
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.engine.durably import durably
from runs.models.blob import GRACE, Blob

FILE_GRACE = 2 * GRACE
NAMES = re.compile(r"[0-9a-f]{64}-[0-9a-f]{8}(_\w{7})?")  # as put() and the storage make them
FOLDERS = re.compile(r"[0-9a-f]{2}")
AT_A_TIME = 200


def collect(sha256: str) -> bool:
    """Delete the blob if nobody refers to it and nobody wanted it for a day; whether that was so."""
    name = durably(lambda: _take_row(sha256))
    if name is None:
        return False
    boundary("blob's row gone")
    storages["default"].delete(name)
    boundary("blob's file gone")
    return True


def look_again(sha256: str) -> None:
    """The chore: a use of this blob was removed a day ago. It goes, or it is used and left alone."""
    if collect(sha256):
        return
    seen = Blob.objects.filter(pk=sha256).values_list("sweep_at", flat=True).first()
    if seen is None:
        return
    unused = Blob.objects.unused().filter(pk=sha256).values_list("touched_at", flat=True).first()
    again = None if unused is None else max(unused, clock.now() - GRACE) + GRACE
    # a use that was removed meanwhile has set another moment, and that one stays
    durably(lambda: Blob.objects.filter(pk=sha256, sweep_at=seen).update(sweep_at=again))


def sweep_rows() -> int:
    """Collect every blob that is left, also what no chore was told of; how many they were."""
    collected, after = 0, ""
    while True:
        left = Blob.objects.left(clock.now()).filter(pk__gt=after).order_by("pk")
        names = list(left.values_list("pk", flat=True)[:AT_A_TIME])
        if not names:
            return collected
        collected += sum(collect(sha256) for sha256 in names)
        after = names[-1]


def sweep_files() -> int:
    """Delete files of blobs that no row names and that are two days old; how many they were.

    Only names that `put` makes are looked at: other files in the same storage are none of ours.
    """
    storage, swept = storages["default"], 0
    oldest = clock.now() - FILE_GRACE
    for name in _files(storage):
        if Blob.objects.filter(storage_name=name).exists() or not _older(storage, name, oldest):
            continue
        storage.delete(name)
        swept += 1
    return swept


def _take_row(sha256: str) -> str | None:
    """The name of the file that nobody needs any more, once its row is deleted; None where the row stays."""
    name = Blob.objects.filter(pk=sha256).values_list("storage_name", flat=True).first()
    if name is None:
        return None
    left = Blob.objects.left(clock.now()).filter(pk=sha256, storage_name=name)
    try:
        with transaction.atomic():
            deleted = left._raw_delete(
                left.db
            )  # one conditional DELETE; delete() would look first, and delete then
    except IntegrityError:  # a row has come to name it meanwhile, and the database itself says no
        return None
    return name if deleted == 1 else None


def _files(storage: Storage) -> Iterator[str]:
    for folder in _listed(storage, "")[0]:
        if FOLDERS.fullmatch(folder):
            for name in _listed(storage, folder)[1]:
                if NAMES.fullmatch(name):
                    yield f"{folder}/{name}"


def _listed(storage: Storage, path: str) -> tuple[list[str], list[str]]:
    try:
        folders, names = storage.listdir(path)
    except FileNotFoundError:  # nothing was ever stored
        return [], []
    return sorted(folders), sorted(names)


def _older(storage: Storage, name: str, than: datetime) -> bool:
    try:
        return storage.get_modified_time(name) < than
    except FileNotFoundError:  # its writer took it away
        return False


def register() -> None:
    """The chore that looks at blobs of which a use was removed."""
    let_go = lambda: Blob.objects.filter(sweep_at__isnull=False)  # noqa: E731
    chores.also(chores.Chore("blobs", let_go, "sweep_at", look_again, lease=timedelta(minutes=5)))
