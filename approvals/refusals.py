"""What stands in the way of a verb, in words to the person who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvals import who
from approvals.text import clock_text
from approvals.words import ASSIGNED, BY_DEADLINE, DELEGATED, DID, SUPERSEDED
from runs.errors import Conflict, Missing, NotAllowed
from runs.models import Run

if TYPE_CHECKING:
    from approvals.models import Activity, Approval, Decision


class TooLate(Conflict):
    """The deadline has passed."""


def must_see(approval: Approval, person: who.Person) -> None:
    """Raises NotAllowed for who is no active user, Missing for who may not know that this exists."""
    if not who.is_person(person) or not person.is_active:
        raise NotAllowed(who.why_not(approval, person))
    if not Run.objects.visible_to(person).filter(pk=approval.run_id).exists():
        raise Missing(f"There is no approval {approval.pk}.")


def must_be_allowed(approval: Approval, person: who.Person) -> who.Standing:
    """For whom `person` decides. Raises NotAllowed saying why they may not."""
    standing = who.standing(approval, person)
    if standing.refused:
        raise NotAllowed(standing.refused)
    return standing


def must_be_open(approval: Approval) -> None:
    """Raises Conflict saying who decided what and when; TooLate if a deadline did."""
    if approval.is_open:
        return
    if approval.conclusion is not None and approval.outcome != SUPERSEDED:
        raise Conflict(f"{told(approval.conclusion)}; nothing was changed.")
    word, since = approval.outcome.replace("_", " "), clock_text(approval.decided_at)
    if approval.outcome in BY_DEADLINE:
        raise TooLate(
            f"Too late: the deadline has passed, and this is {word} since {since}; nothing was changed."
        )
    raise Conflict(f"This is closed ({word}) since {since}; nothing was changed.")


def must_be_revision(approval: Approval, revision: int | None) -> None:
    """Raises Conflict naming who changed what since the revision that a person looked at; None looks at any."""
    if revision is None or revision == approval.revision:
        return
    rows = [
        *approval.decisions.filter(revision__gt=revision).select_related("by"),
        *approval.activities.filter(revision__gt=revision).select_related("by", "to"),
    ]
    moved: dict[int, Activity | Decision] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        moved.setdefault(row.revision, row)  # the row that moved the revision is the first that carries it
    said = "; ".join(told(row) for row in moved.values()) or "it was changed"
    raise Conflict(
        f"This has changed since you looked at it (you saw revision {revision}, it is at {approval.revision}): "
        f"{said}. Nothing was changed; look again, then decide."
    )


def told(row: Activity | Decision) -> str:
    """ada approved this with edits at 14:06:09 CET on 2026-11-26."""
    person = row.by.get_username() if row.by is not None else "the engine"
    if hasattr(row, "verdict"):
        done = DID[row.verdict]
        if row.instead_of is not None:
            person = f"{person} for {row.instead_of.get_username()}"
    elif row.kind in (ASSIGNED, DELEGATED) and row.to is not None:
        given = "assigned this" if row.kind == ASSIGNED else "gave their part"
        done = f"{given} to {row.to.get_username()}"
    else:
        done = DID.get(row.kind, row.kind)
    return f"{person} {done} at {clock_text(row.at)}"
