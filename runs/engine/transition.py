"""A transition by a verb that has locked the run: the conditional UPDATE, its checkpoint, and the rule between them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any  # column values

from django.utils.translation import gettext_lazy as _

from runs.core import codec
from runs.core.chain import SALT_BYTES, Link
from runs.core.words import storable_text
from runs.errors import Conflict, status, told
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run
from runs.models.statuses import RUNNING, may_follow
from runs.secrets import guard

LONGEST_ACTOR = 160  # where more was cut, the column has room for saying so
START = "start"
FORK = "fork"  # in place of it, of a run that begins where another one stood
SETTLE = "settle"  # of what an ended run left in doubt: its status stays
CLOSE = "close"  # an operator puts a failed run aside: so does this


def move(
    run: Run,
    kind: str,
    now: datetime,
    *,
    actor: str,
    reason: str = "",
    body: str = "",
    snapshot: bool | None = None,
    lines: Iterable[list[object]] = (),
    **changes: Any,
) -> Checkpoint:
    """Apply `changes` to a locked run and append the checkpoint; raises Conflict if the run has moved on.

    `body` is a snapshot, unless `snapshot` says otherwise. Secrets in the reason and the error are redacted.
    """
    after = changes.get("status", run.status)
    if kind == START:
        first = begun(run, now, actor, reason, body)
        run.save(force_insert=True)
        first.save(force_insert=True)
        return first
    if "error" in changes:
        changes["error"] = guard().redact(changes["error"])
    if kind not in (SETTLE, CLOSE) and not may_follow(run.status, after):
        raise Conflict(
            told(
                _("Run %(run)s is %(status)s; it cannot become %(after)s."),
                run=run.short_id,
                status=status(run.status),
                after=status(after),
            )
        )
    before = ("step", "node", "version", "attempt", "fence")
    shown = {**{name: getattr(run, name) for name in before}, **changes}
    link = Link(
        run=str(run.id),
        seq=run.seq + 1,
        kind=kind,
        step=shown["step"],
        node=shown["node"],
        status=after,
        version=shown["version"],
        attempt=shown["attempt"],
        fence=shown["fence"],
        actor=storable_text(actor, LONGEST_ACTOR),
        reason=storable_text(guard().redact(reason)),
        at=now,
        body=body,
        snapshot=bool(body) if snapshot is None else snapshot,
        salt=os.urandom(SALT_BYTES),
        before=run.head,
        entries=codec.encode(list(lines)),
    ).seal()
    changes |= {"seq": link.seq, "head": link.digest}
    if Run.objects.filter(pk=run.pk, fence=run.fence, seq=run.seq).update(**changes) != 1:
        raise Conflict(told(_("Run %(run)s has moved on; look at it again."), run=run.short_id))
    for name, value in changes.items():
        setattr(run, name, value)
    return Checkpoint.objects.create(run=run, **_columns(link))


def given_to_workers(run: Run, now: datetime) -> dict[str, Any]:
    """What it changes that a run is due at once: no worker has it any more, and tries and deaths count anew."""
    return {
        "status": RUNNING,
        "wake_at": now,
        "leased_by": None,
        "fence": run.fence + 1,
        "attempt": 0,
        "deaths": 0,
        "silent": 0,
        "alone": False,
    }


def begun(
    run: Run,
    now: datetime,
    actor: str,
    reason: str,
    body: str,
    kind: str = START,
    lines: Iterable[list[object]] = (),
) -> Checkpoint:
    """The first checkpoint of a new run, which names it as its head. Neither is saved."""
    link = Link(
        run=str(run.id),
        seq=run.seq,
        kind=kind,
        step=run.step,
        node=run.node,
        status=run.status,
        version=run.version,
        attempt=run.attempt,
        fence=run.fence,
        actor=storable_text(actor, LONGEST_ACTOR),
        reason=storable_text(guard().redact(reason)),
        at=now,
        body=body,
        snapshot=True,
        salt=os.urandom(SALT_BYTES),
        before="",
        entries=codec.encode(list(lines)),
    ).seal()
    run.head = link.digest
    return Checkpoint(run=run, **_columns(link))


def _columns(link: Link) -> dict[str, Any]:
    names = (
        "seq", "kind", "step", "node", "status", "version", "attempt", "fence", "body", "snapshot", "actor", "reason",
        "at", "entries", "body_digest", "salt", "digest",
    )  # fmt: skip
    return {name: getattr(link, name) for name in names}
