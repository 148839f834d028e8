"""`Run.fork`: a new run begins where another one stood, with what that had done in the step it enters.

The fork has an id and so keys of its own. It takes over the done entries of that step as copies that name their origin;
it never undoes what they did, which is the origin's. People are asked anew, and what failed is asked anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core.errors import DurableError
from runs.core.ledger import COMPENSATED
from runs.engine import blobs, clock, holding
from runs.engine.announce import announce
from runs.engine.below import writes_below
from runs.engine.closing import line_of
from runs.engine.copying import copies_of
from runs.engine.ids import uuid7
from runs.engine.starting import first_body
from runs.engine.state import StoredState
from runs.engine.transition import FORK, begun
from runs.errors import Conflict, Invalid, Missing, told
from runs.models.checkpoint import Checkpoint
from runs.models.entry import CHILD, DONE, EFFECT, IN_DOUBT, OPEN, LedgerEntry
from runs.models.run import Run
from runs.models.tombstone import Tombstone
from runs.unstorable import fault

SENT = (DONE, IN_DOUBT, COMPENSATED)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stood at one of its checkpoints: the node in progress, and how many steps were committed."""

    seq: int
    node: str
    step: int
    version: int


def fork(run_id: uuid.UUID, by: str, reason: str, seq: int | None) -> Run:
    """The verb; its docstring is at Run.fork. The reason is checked."""
    with transaction.atomic():
        origin, now = Run.objects.lock_with_family(run_id)
        if Tombstone.objects.filter(run=origin.root).exists():
            raise Conflict(
                told(
                    _("Run %(run)s is erased, or being erased; nothing is left to fork."), run=origin.short_id
                )
            )
        if origin.ending:
            raise Conflict(
                told(_("Run %(run)s is undoing what it did; fork it once that is over."), run=origin.short_id)
            )
        place = place_at(origin, seq)
        _refuse_unserved(origin, place)
        entries = list(origin.entries.filter(step=place.step + 1).order_by("id"))
        _refuse_unclear(origin, entries)
        made = _made(origin, place, now)
        copies = copies_of(origin, made, entries)
        words = f"From run {origin.pk}, checkpoint {place.seq}: {reason}"
        first = begun(made, now, by, words, _body(origin, made, place), FORK, map(line_of, copies))
        made.save(force_insert=True)
        first.save(force_insert=True)
        LedgerEntry.objects.bulk_create(copies)
        announce()
    return made


def would_send(run: Run, seq: int | None = None) -> list[LedgerEntry]:
    """The writes that a fork from there would make again, if it goes the same way: those of later steps.

    Of the step that it enters only what was undone since; the rest it takes over. Children that it would start anew,
    which are all but those that had ended in that step, do theirs again as well.
    """
    place = place_at(run, seq)
    later = list(run.entries.filter(step__gt=place.step).order_by("id"))
    own = [one for one in later if _is_sent(one) and (one.step > place.step + 1 or one.status == COMPENSATED)]
    return [*own, *filter(_is_sent, writes_below(_begun_anew(later, place), SENT))]


def would_start(run: Run, seq: int | None = None) -> list[LedgerEntry]:
    """The starts of children that a fork from there would make again, if it goes the same way."""
    place = place_at(run, seq)
    return _begun_anew(run.entries.filter(step__gt=place.step).order_by("id"), place)


def _begun_anew(later: Iterable[LedgerEntry], place: Place) -> list[LedgerEntry]:
    """All but those that had ended in the step which the fork enters: these it takes over."""
    children = [entry for entry in later if entry.kind == CHILD and not entry.aside]
    started = [  # not only waited for
        entry for entry in children if not entry.key.startswith(f"end:{entry.child_id}")
    ]
    return [entry for entry in started if entry.step > place.step + 1 or entry.status != DONE]


def _is_sent(entry: LedgerEntry) -> bool:
    return entry.kind == EFFECT and entry.write and entry.compensates_id is None and entry.status in SENT


def place_at(run: Run, seq: int | None) -> Place:
    """Raises Missing for a checkpoint that is not there, Conflict for one from which a fork cannot go on."""
    number = run.seq if seq is None else seq
    if type(number) is not int:
        raise Invalid(told(_("A checkpoint is named by its number, not by %(seq)s."), seq=repr(number)))
    link = run.checkpoints.filter(seq=number).first()
    if link is None:
        raise Missing(told(_("Run %(run)s has no checkpoint %(seq)s."), run=run.short_id, seq=number))
    if link.kind == "complete" or _is_skipped_to_the_end(run, link):
        raise Conflict(
            told(
                _("Checkpoint %(seq)s of run %(run)s is its end: no node follows. Fork an earlier one."),
                seq=number,
                run=run.short_id,
            )
        )
    _refuse_undone(run, link)
    return Place(number, _node_after(run, link), link.step, link.version)


def _is_skipped_to_the_end(run: Run, link: Checkpoint) -> bool:
    """One act of a repair left this checkpoint and the next, which is the run's end: no worker was in between."""
    following = run.checkpoints.filter(seq=link.seq + 1, kind="complete", fence=link.fence)
    return link.kind == "repair" and following.exists()


def _refuse_undone(run: Run, link: Checkpoint) -> None:
    """Of the steps before this checkpoint: its state speaks of what they did."""
    undone = run.entries.filter(status=COMPENSATED, step__lte=link.step).order_by("step", "id")
    if not undone:
        return
    before = run.checkpoints.filter(step__lt=undone[0].step).order_by("-seq").values_list("seq", flat=True)[0]
    said = _(
        "What run %(run)s did before checkpoint %(seq)s was undone (%(keys)s). Fork it from checkpoint %(before)s, or "
        "an earlier one."
    )
    keys = ", ".join(entry.key for entry in undone)
    raise Conflict(told(said, run=run.short_id, seq=link.seq, keys=keys, before=before))


def _node_after(run: Run, link: Checkpoint) -> str:
    """A checkpoint names the node in progress; that of a commit names the one that has committed."""
    if link.kind != "step":
        return link.node
    following = run.checkpoints.filter(seq=link.seq + 1).first()
    if following is None:
        return run.node
    if following.kind in ("step", "complete") or following.step == link.step:
        return following.node
    graph = registry.find(
        run.graph, link.version
    )  # it was migrated away at once, and nobody wrote down from where
    then = graph.nodes[link.node].then if graph is not None and link.node in graph.nodes else ()
    if len(then) == 1:
        return then[0]
    raise Conflict(
        told(
            _("Which node followed checkpoint %(seq)s of run %(run)s is not known; fork the one after it."),
            seq=link.seq,
            run=run.short_id,
        )
    )


def _refuse_unserved(origin: Run, place: Place) -> None:
    pair = (origin.graph, place.version)
    if (held := holding.held([pair], clock.now()).get(pair)) is not None:
        raise Conflict(
            told(
                _("A fork of run %(run)s could not go on: it %(needs)s; %(why)s."),
                run=origin.short_id,
                needs=_(held.needs),
                why=held.why,
            )
        )


def _refuse_unclear(origin: Run, entries: list[LedgerEntry]) -> None:
    """What may have been sent cannot be taken over, and must not be sent again, also by a child that begins anew."""
    unclear = [entry.key for entry in entries if entry.is_unclear]
    below = writes_below([entry for entry in entries if entry.status != DONE], (OPEN, IN_DOUBT))
    unclear += [f"{one.key} ({one.run.short_id})" for one in below if one.is_unclear]
    if unclear:
        raise Conflict(
            told(
                _(
                    "Run %(run)s: whether %(keys)s happened is not known yet, and a fork would enter that step."
                ),
                run=origin.short_id,
                keys=", ".join(unclear),
            )
        )


def _made(origin: Run, place: Place, now: datetime) -> Run:
    """A family of its own. Who started the origin is who started this: what they may not decide stays so."""
    run_id = uuid7()
    return Run(
        id=run_id,
        root=run_id,
        graph=origin.graph,
        version=place.version,
        node=place.node,
        step=place.step,
        origin=origin.pk,
        origin_seq=place.seq,
        wake_at=now,
        queue=origin.queue,
        priority=origin.priority,
        lane=origin.lane,
        labels=origin.labels,
        created_by_id=origin.created_by_id,
        on_behalf_of_id=origin.on_behalf_of_id,
        created_at=now,
    )


def _body(origin: Run, made: Run, place: Place) -> str:
    try:
        tree = StoredState.load(origin.pk, place.seq).tree
    except DurableError as error:
        said = _("The state at checkpoint %(seq)s of run %(run)s cannot be read: %(error)s")
        raise Conflict(told(said, seq=place.seq, run=origin.short_id, error=fault(error))) from error
    body = first_body(made, tree)
    blobs.share(origin.pk, made.pk, body)
    return body
