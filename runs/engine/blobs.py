"""Bytes by reference: the file first, then its row and the run's use of it in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any  # run ids and trees

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import IntegrityError, transaction

from runs.core import codec
from runs.core.codec_tree import MARK
from runs.core.errors import DurableError, TooLarge
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.models.blob import Blob, BlobUse
from runs.secrets import guard

OFFLOADED = "offloaded"
MOST_TRIES = 5


class BlobGone(DurableError):
    """A blob's bytes are not in storage any more."""

    error_kind = "bad_state"


@dataclass(frozen=True, slots=True)
class Laid:
    """A blob whose bytes are stored; `name` is the file's, "" where a row names one already."""

    ref: codec.BlobRef
    name: str


def put(run_id: Any, content: bytes, media_type: str, limit: int) -> codec.BlobRef:
    """Store bytes for a run; equal content is stored once. Raises TooLarge over the hard limit."""
    if len(content) > limit:
        raise TooLarge("blob", len(content), limit)
    ref = codec.BlobRef(codec.digest(content), len(content), media_type)
    boundary("blob")
    for _try in range(MOST_TRIES):
        if touch(run_id, ref.sha256) or _store(run_id, ref, content):
            boundary("stored")
            return ref
    raise _not_stored(run_id, ref)


def lay_down(content: bytes, media_type: str, limit: int) -> Laid:
    """The file of a blob alone, ahead of a transaction in which `take_up` gives it to a run. Raises TooLarge.

    Equal content that is stored already is wanted anew, so no collector takes it for a day.
    """
    if len(content) > limit:
        raise TooLarge("blob", len(content), limit)
    ref = codec.BlobRef(codec.digest(content), len(content), media_type)
    stored = Blob.objects.filter(pk=ref.sha256).update(touched_at=clock.now())
    return Laid(ref, "" if stored else _save(ref, content))


def take_up(run_id: Any, laid: Laid) -> codec.BlobRef:
    """Rows alone, within the caller's transaction. A file that turns out not to be needed is swept later."""
    for _try in range(MOST_TRIES):
        if touch(run_id, laid.ref.sha256) or (laid.name and _record(run_id, laid.ref, laid.name)):
            return laid.ref
    raise _not_stored(run_id, laid.ref)


def touch(run_id: Any, sha256: str) -> bool:
    """Say that the run wants the blob, before a collector may take it; False when there is none.

    First the row's moment: its lock holds off a collector, which afterwards finds it touched.
    """
    with transaction.atomic():
        if not Blob.objects.filter(pk=sha256).update(touched_at=clock.now()):
            return False
        BlobUse.objects.get_or_create(run_id=run_id, blob_id=sha256)
    return True


def _store(run_id: Any, ref: codec.BlobRef, content: bytes) -> bool:
    """The file, then its row; False when another has made the row meanwhile. A file without a row is swept later."""
    stored = _save(ref, content)
    boundary("blob's rows")
    if not _record(run_id, ref, stored):
        storages["default"].delete(stored)
        return False
    return True


def _save(ref: codec.BlobRef, content: bytes) -> str:
    name = f"{ref.sha256[:2]}/{ref.sha256}-{secrets.token_hex(4)}"
    return storages["default"].save(name, ContentFile(content))


def _record(run_id: Any, ref: codec.BlobRef, stored: str) -> bool:
    """The row of a stored file, and the run's use of it; False when another has made the row meanwhile."""
    try:
        with transaction.atomic():
            Blob.objects.create(
                sha256=ref.sha256,
                size=ref.size,
                media_type=ref.media_type[:100],
                storage_name=stored,
                touched_at=clock.now(),
            )
            BlobUse.objects.get_or_create(run_id=run_id, blob_id=ref.sha256)
    except IntegrityError:  # another run stored the same bytes at the same moment
        return False
    return True


def _not_stored(run_id: Any, ref: codec.BlobRef) -> BlobGone:
    return BlobGone(f"run {run_id}: blob {ref.sha256[:12]} ({ref.size:,} bytes) could not be stored")


def read(run_id: Any, sha256: str, key: str = "blob") -> bytes:
    """The bytes of a blob that this run uses. Raises BlobGone naming run, key and size."""
    blob = Blob.objects.filter(pk=sha256, uses__run_id=run_id).first()
    if blob is None:
        raise BlobGone(f"run {run_id}, {key}: uses no blob {sha256[:12]}")
    try:
        with storages["default"].open(blob.storage_name) as file:
            content = file.read()
    except OSError as error:
        raise BlobGone(
            f"run {run_id}, {key}: blob {sha256[:12]} ({blob.size:,} bytes) is not in storage"
        ) from error
    if codec.digest(content) != sha256:
        raise BlobGone(
            f"run {run_id}, {key}: blob {sha256[:12]} ({blob.size:,} bytes) was changed in storage"
        )
    return content


def share(owner_id: Any, other_id: Any, text: str) -> None:
    """Let another run use the blobs that a canonical text of the owner's refers to: what it passes on can be read."""
    if '{"$":"blob"' not in text:
        return
    named = set(_references(codec.decode(text)))
    owned = BlobUse.objects.filter(run_id=owner_id, blob_id__in=named).values_list("blob_id", flat=True)
    for sha256 in sorted(owned):
        if not touch(other_id, sha256):
            raise BlobGone(f"run {owner_id}: blob {sha256[:12]} is gone, and cannot be passed on")


def _references(tree: Any) -> Iterator[str]:
    if type(tree) is dict and tree.get(MARK) == "blob":
        yield tree["sha256"]
    elif type(tree) in (dict, list):
        for part in tree.values() if type(tree) is dict else tree:
            yield from _references(part)


def offload_text(run_id: Any, text: str, key: str, threshold: int, limit: int) -> str:
    """A request or result that is too long for a row becomes a reference to a blob."""
    if len(text) <= threshold:
        return text
    if len(text) > limit:
        raise TooLarge(key, len(text), limit)
    ref = put(run_id, text.encode(), "application/json", limit)
    return codec.encode({"$": OFFLOADED, "sha256": ref.sha256, "size": ref.size}, sort=True)


def load_text(run_id: Any, text: str | None, key: str) -> str | None:
    """The text itself, fetched when it stands in a blob."""
    if text is None or not text.startswith('{"$":"' + OFFLOADED + '"'):
        return text
    return read(run_id, codec.decode(text)["sha256"], key).decode()


def offload_tree(
    run_id: Any, new: Any, old: Any, stored: Any, threshold: int, limit: int, path: str = "$"
) -> Any:
    """The tree with each long text replaced by a reference; what is unchanged keeps its old stored part."""
    if new is old:
        return stored
    if type(new) is str:
        if len(new) <= threshold:
            return new
        if new == old and isinstance(stored, dict):
            return stored
        data = new.encode("utf-8", "surrogatepass")
        if len(data) > limit:
            raise TooLarge(path, len(data), limit)
        guard().refuse(new, path)
        ref = put(run_id, data, "text/plain; charset=utf-8", limit)
        return {"$": OFFLOADED, "sha256": ref.sha256, "size": ref.size}
    if type(new) is dict:
        before = old if type(old) is dict else {}
        kept = stored if type(stored) is dict else {}
        return {
            name: offload_tree(
                run_id, value, before.get(name, _NONE), kept.get(name), threshold, limit, f"{path}.{name}"
            )
            for name, value in new.items()
        }
    if type(new) is list:
        before = old if type(old) is list else []
        kept = stored if type(stored) is list else []
        return [
            offload_tree(
                run_id,
                value,
                before[place] if place < len(before) else _NONE,
                kept[place] if place < len(kept) else None,
                threshold,
                limit,
                f"{path}[{place}]",
            )
            for place, value in enumerate(new)
        ]
    return new


def load_tree(run_id: Any, stored: Any, path: str = "$") -> Any:
    """The opposite: every reference replaced by its text."""
    if type(stored) is dict:
        if stored.get("$") == OFFLOADED:
            return read(run_id, stored["sha256"], path).decode("utf-8", "surrogatepass")
        return {name: load_tree(run_id, value, f"{path}.{name}") for name, value in stored.items()}
    if type(stored) is list:
        return [load_tree(run_id, value, f"{path}[{place}]") for place, value in enumerate(stored)]
    return stored


_NONE = object()
