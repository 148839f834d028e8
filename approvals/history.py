"""How a run got here, and what people did with an approval: rows of the trail as sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from approvals import mentions, words
from approvals.forms.values import visible
from approvals.recorded import reminded
from approvals.text import respoken
from runs.models import Checkpoint
from runs.naming import apart
from runs.pages.plain import actor
from runs.pages.words import person_name, status_word

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.utils.safestring import SafeString

    from approvals.models import Activity, Approval, Attachment, Decision
    from runs.models import Run

SHOWN = 5
MOST = 200  # transitions that are read; a run may have ten thousand
_TOLD = ("start", "step", "retry", "lost", "repair", "migrate", "fork")


@dataclass(frozen=True, slots=True)
class Step:
    """One line: a strong word, the rest of the sentence, and a remark below it."""

    status: str
    strong: str
    rest: str
    at: datetime
    remark: str = ""
    seq: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Path:
    """`is_cut`: there are more before these."""

    earlier: list[Step]
    latest: list[Step]
    is_cut: bool = False


def path_of(run: Run, until: datetime | None = None) -> Path:
    """The transitions a person cares about, a node's repeats as one; all but the last few are folded. One query."""
    rows = run.checkpoints.filter(kind__in=_TOLD).order_by("-seq")
    if until is not None:
        rows = rows.filter(at__lte=until)
    steps: list[Step] = []
    told = ("seq", "kind", "node", "status", "attempt", "actor", "reason", "at", "run_id")
    newest = list(rows.only(*told)[: MOST + 1])
    for row in reversed(newest[:MOST]):
        step = _step(row)
        last = steps[-1] if steps else None
        if last and step.status == last.status == "completed" and step.strong == last.strong:
            step = replace(step, times=last.times + 1)
            steps.pop()
        steps.append(step)
    shown = SHOWN if len(steps) > SHOWN + 1 else SHOWN + 1  # to fold a single one would save nothing
    return Path(steps[:-shown], steps[-shown:], len(newest) > MOST)


def _step(row: Checkpoint) -> Step:
    remark = visible(row.reason)[:300]
    if row.kind == "start":
        return Step(
            "created",
            _("Started"),
            _("by %(who)s") % {"who": apart(visible(actor(row.actor)))},
            row.at,
            remark,
            row.seq,
        )
    if row.kind == "step":
        return Step("completed", visible(row.node), _("done"), row.at, remark, row.seq)
    if row.kind == "retry":
        return Step("retrying", visible(row.node), _("is tried again"), row.at, remark, row.seq)
    if row.kind == "lost":
        told = _("went on with what was recorded; nothing was asked twice")
        return Step("running", _("A worker was lost,"), told, row.at, remark, row.seq)
    if row.kind in ("repair", "fork"):
        did = _("Repaired") if row.kind == "repair" else _("Forked")
        who = _("by %(who)s") % {"who": apart(visible(actor(row.actor)))}
        return Step("created", did, who, row.at, remark, row.seq)
    return Step("created", visible(row.kind), visible(row.node), row.at, remark, row.seq)


@dataclass(frozen=True, slots=True)
class Seat:
    """One line of "Who may decide": a vote, or a person whose vote is missing."""

    person: User
    status: str  # a verdict's outcome, waiting, or "" for who is not needed
    says: str
    note: str = ""
    at: datetime | None = None
    is_you: bool = False
    stage: int = 1
    instead_of: User | None = None


_OUTCOME_OF = {
    words.APPROVE: words.APPROVED,
    words.EDIT: words.APPROVED_WITH_EDITS,
    words.REJECT: words.REJECTED,
    words.RESPOND: words.RESPONDED,
}


def seats(approval: Approval, rows: list[Decision | Activity], people: list[User], user: User) -> list[Seat]:
    """Decisions that stand, then, while it is open, who may still decide."""
    withdrawn = {row.decision_id for row in rows if not hasattr(row, "verdict") and row.decision_id}
    table = approval.payload_digest
    taken: list[Seat] = []
    for row in rows:
        if not hasattr(row, "verdict") or row.pk in withdrawn:
            continue
        superseded = approval.is_open and row.payload_digest != table
        note = visible(row.reason)
        if superseded:
            note = _("for an earlier text; asked again")
        taken.append(
            Seat(
                row.by,
                _OUTCOME_OF[row.verdict],
                "",
                note,
                row.at,
                row.by_id == user.pk,
                row.stage,
                row.instead_of,
            )
        )
    if not approval.is_open:
        return taken
    voted = {vote.by_id for vote in approval.votes.all()}
    here = [row for row in approval.reviewers.all() if row.stage == approval.stage]
    deputies = {row.name: row.instead_of for row in here if row.instead_of_id is not None}
    waiting = [
        Seat(
            person,
            "waiting",
            _("Not yet"),
            is_you=person.pk == user.pk,
            stage=approval.stage,
            instead_of=deputies.get(person.get_username()),
        )
        for person in people
        if person.pk not in voted
    ]
    return taken + sorted(waiting, key=lambda seat: not seat.is_you)


@dataclass(frozen=True, slots=True)
class Note:
    """One line of "Comments and activity"; a comment shows its text as it was written, as HTML if people are named."""

    icon: str
    person: User | None
    text: str
    at: datetime
    comment: str | SafeString = ""
    is_comment: bool = False
    file: Attachment | None = None


_ICONS = {
    **{verdict: status_word(outcome).icon for verdict, outcome in _OUTCOME_OF.items()},
    words.OPENED: "waiting",
    words.ATTACHED: "file",
    words.REMINDED: "timer",
    words.EXTENDED: "timer",
    words.ESCALATED: "users",
    words.DELEGATED: "users",
    words.RECALLED: "users",
    words.UNDONE: "undo",
    words.TAKEN_BACK: "undo",
    words.LATE: "expired",
    words.REFUSED: "rejected",
    words.EXPIRED: "expired",
    words.CLOSED: "cancelled",
}


def notes(approval: Approval, rows: list[Decision | Activity], user: User) -> list[Note]:
    """Read with one query more where files are attached, and one where people may be named."""
    attached = any(getattr(row, "kind", "") == words.ATTACHED for row in rows)
    files = {file.activity_id: file for file in approval.attachments.all()} if attached else {}
    said = [row.text for row in rows if getattr(row, "kind", "") == words.COMMENTED]
    named = {one.get_username(): one for one in mentions.people_in("\n".join(said))}
    found = []
    for row in rows:
        note = _note(row, user)
        if getattr(row, "kind", "") == words.ATTACHED:
            note = replace(note, file=files.get(row.pk))
        elif note.is_comment:
            note = replace(note, comment=mentions.marked(note.comment, named, user))
        found.append(note)
    return found


def _note(row: Decision | Activity, user: User) -> Note:
    who = _("You") if row.by_id == user.pk else apart(visible(person_name(row.by))) if row.by else ""
    if hasattr(row, "verdict"):
        reason = visible(row.reason)
        if row.instead_of is not None:
            names = {"who": who, "whom": apart(visible(person_name(row.instead_of)))}
            who = _("%(who)s for %(whom)s") % names
        return Note(_ICONS[row.verdict], row.by, str(words.DID[row.verdict]) % {"who": who}, row.at, reason)
    if row.kind == words.COMMENTED:
        return Note("comment", row.by, who, row.at, visible(row.text), is_comment=True)
    names = {
        "who": who,
        "to": apart(visible(person_name(row.to))) if row.to else "",
        "text": respoken(visible(row.text)),
    }
    if row.kind == words.ASSIGNED and row.to:
        said = _("%(who)s assigned this to %(to)s") % names
    elif row.kind == words.DELEGATED:
        own = _("You gave your part to %(to)s")
        said = (own if row.by_id == user.pk else _("%(who)s gave their part to %(to)s")) % names
        if row.text:
            said = f"{said}, {names['text']}"
    elif row.kind == words.RECALLED:
        own = _("You took your part back from %(to)s")
        said = (own if row.by_id == user.pk else _("%(who)s took their part back from %(to)s")) % names
    elif row.kind == words.EXTENDED:
        said = _("%(who)s moved the deadline %(text)s") % names
    elif row.kind == words.REMINDED:
        said = _("Still open: %(text)s") % names
    elif row.kind == words.ESCALATED:
        said = _("It was still open, so %(text)s may decide as well") % names
    elif row.kind == words.OPENED:
        said = _("The run asked")
    elif row.kind == words.LATE:
        said = _("%(who)s came too late") % {"who": who}
    elif row.kind == words.REFUSED:
        said = _("You were refused") if row.by_id == user.pk else _("%(who)s was refused") % {"who": who}
    elif row.kind == words.EXPIRED:
        said = _("The deadline passed without a decision")
    elif row.kind == words.CLOSED and row.text == words.SUPERSEDED:
        said = _("The run asked anew")
    elif row.kind == words.CLOSED:
        said = _("The run closed this")
    else:
        done = words.DID.get(row.kind)
        said = str(done) % names if done is not None else f"{who} {row.kind}"
    remark = visible(reminded(row.text)) if row.kind in (words.LATE, words.REFUSED) else ""
    return Note(_ICONS.get(row.kind, "user"), None, said, row.at, remark)
