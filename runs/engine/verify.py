"""Does a run's trail still say what was written? The first row that was changed, removed or moved, in words.

Pure over rows: each checkpoint's digests are computed again from its columns, and each ledger entry is compared with
the last checkpoint that names it (DESIGN section 10). `also` adds the trails that other apps keep beside a run.
"""

from __future__ import annotations

from collections.abc import Callable

from runs.core import codec
from runs.core.chain import Link
from runs.core.errors import DurableError
from runs.engine import blobs
from runs.engine.closing import line_of
from runs.engine.erasing import rest_of
from runs.models.checkpoint import Checkpoint
from runs.models.entry import CHILD, COMPENSATED, DONE, IN_DOUBT, INTERRUPT, OPEN, LedgerEntry
from runs.models.run import Run
from runs.models.statuses import CANCELLED
from runs.models.tombstone import ERASED, Tombstone

KEY, STATUS, REQUEST_DIGEST = 0, 2, 3

_also: list[Callable[[Run], str | None]] = []


def also(first_bad: Callable[[Run], str | None]) -> None:
    """Verify this of every run as well: the first bad row in words, or None."""
    _also.append(first_bad)


def first_bad_row(run: Run) -> str | None:
    """Which row of the run does not hold and why, or None when all of it does."""
    links = list(run.checkpoints.order_by("seq"))
    stone = Tombstone.objects.filter(run=run).first()
    if stone is not None and (bad := _of_tombstone(run, stone)):
        return bad
    if stone is not None:
        bad = _of_chain(run, links, erased=True)
        return bad or next((found for check in _also if (found := check(run)) is not None), None)
    entries = list(run.entries.order_by("id"))
    bad = _of_chain(run, links) or _of_ledger(run, links, entries)
    return bad or next((found for check in _also if (found := check(run)) is not None), None)


def _of_tombstone(run: Run, stone: Tombstone) -> str | None:
    """All that remains of an erased run is covered by its tombstone, once that is sealed."""
    if stone.head != run.head:
        return "The run's head is not the one that its tombstone names."
    if stone.erased_at is not None and stone.rest != rest_of(run):
        return "What remains of the erased run is not what its tombstone was sealed over."
    return None


def _of_chain(run: Run, links: list[Checkpoint], erased: bool = False) -> str | None:
    """`erased`: bodies are known by their digests, and a link whose reason is gone cannot be computed again.

    Such a one is covered by the link after it, and by the tombstone.
    """
    before = ""
    for seq, row in enumerate(links):
        if row.seq != seq:
            return f"Checkpoint {seq} is missing: checkpoint {row.seq} follows {seq - 1}."
        name = f"Checkpoint {seq} ({row.kind}, {row.at:%Y-%m-%d %H:%M:%S} UTC)"
        body_is_gone = erased and not row.salt
        link = _link(row, before, row.body_digest if body_is_gone else None)
        if erased and row.reason == ERASED:
            before = row.digest
            continue
        if link.body_digest != row.body_digest:
            return f"{name}: its body was changed; it does not fit its digest."
        if link.digest != row.digest:
            return f"{name} was changed or moved: it does not fit its digest, which covers the one before."
        before = row.digest
    if len(links) != run.seq + 1:
        return (
            f"Checkpoint {len(links)} is missing: the run counts {run.seq}, the last one is {len(links) - 1}."
        )
    last = links[-1]
    if run.head != before:
        return f"Checkpoint {last.seq} ({last.kind}) is not the one that the run names as its head."
    if (run.status, run.step, run.fence) != (last.status, last.step, last.fence):
        return (
            f"The run's own row was changed after checkpoint {last.seq}: it says {run.status}, step {run.step}, "
            f"fence {run.fence}; the checkpoint says {last.status}, step {last.step}, fence {last.fence}."
        )
    return None


def _link(row: Checkpoint, before: str, body_digest: str | None) -> Link:
    return Link(
        run=str(row.run_id),
        seq=row.seq,
        kind=row.kind,
        step=row.step,
        node=row.node,
        status=row.status,
        version=row.version,
        attempt=row.attempt,
        fence=row.fence,
        actor=row.actor,
        reason=row.reason,
        at=row.at,
        body=row.body,
        snapshot=row.snapshot,
        salt=bytes(row.salt),
        before=before,
        entries=row.entries,
    ).seal(body_digest)


def _of_ledger(run: Run, links: list[Checkpoint], entries: list[LedgerEntry]) -> str | None:
    """Each entry against the last list that names it; a list that names an entry which is gone is a fault as well."""
    named: dict[tuple[int, str], tuple[int, list[object]]] = {}
    done = links[0].step if links else 0  # a fork goes on counting
    for link in links:
        step = done + 1  # the one in progress, also where the checkpoint leaves it
        done = link.step
        for line in codec.decode(link.entries):
            named[step, line[KEY]] = link.seq, line
    there = {(entry.step, entry.key): entry for entry in entries}
    for (step, key), (seq, _) in named.items():
        if (step, key) not in there:
            return f"Ledger entry {key!r} of step {step} is missing: checkpoint {seq} names it."
    compensated = {entry.compensates_id for entry in entries if entry.compensates_id and entry.status == DONE}
    for place, entry in there.items():
        if (entry.status == COMPENSATED) != (entry.pk in compensated):
            fault = f"is {entry.status}, and {'a' if entry.pk in compensated else 'no'} compensation of it is done"
        elif place in named:
            fault = _difference(run, entry, *named[place])
        else:
            fault = None if _in_progress(run, entry) else "was added: no checkpoint names it"
        if fault:
            return f"Ledger entry {entry.key!r} of step {entry.step} {fault}."
    return None


def _difference(run: Run, entry: LedgerEntry, seq: int, line: list[object]) -> str | None:
    try:
        now = line_of(entry)
        request = blobs.load_text(entry.run_id, entry.request, entry.key)
    except DurableError as error:
        return f"cannot be read: {error}"
    if codec.digest(request) != entry.request_digest:
        return "has another request than its digest says"
    if now == line:
        return None
    if now == [*line[:STATUS], COMPENSATED, *line[STATUS + 1 :]] and line[STATUS] == DONE:
        return None  # a later checkpoint, of a step of its own, names the compensation
    moves_on = (
        line[STATUS] in (OPEN, IN_DOUBT)
        or (entry.kind == CHILD and line[STATUS] == CANCELLED)  # a repaired run takes it up
        or (entry.kind == INTERRUPT and now == [*line[:STATUS], CANCELLED, *line[STATUS + 1 :]])
    )
    pending = moves_on and _in_progress(run, entry)
    if pending and now[REQUEST_DIGEST] == line[REQUEST_DIGEST]:
        return None  # answered, tried, settled or superseded since; the next checkpoint covers it
    names = ("key", "kind", "status", "request", "result", "answered by", "answered at", "approval")
    changed = [name for name, was, is_ in zip(names, line, now, strict=True) if was != is_]
    return f"was changed after checkpoint {seq}: {', '.join(changed)}"


def _in_progress(run: Run, entry: LedgerEntry) -> bool:
    """Whether a coming checkpoint will cover it."""
    return not run.ended and entry.step == run.step + 1
