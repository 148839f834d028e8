"""What stands in the way of a verb, in words to the person who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from approvals import who
from approvals.text import clock_said
from approvals.words import ASSIGNED, BY_DEADLINE, DELEGATED, DID, REJECT, SUPERSEDED
from runs.errors import Conflict, Invalid, Missing, NotAllowed, in_turn, lowered, told
from runs.models import Run, Tombstone
from runs.naming import someone
from runs.pages.words import status_word

if TYPE_CHECKING:
    from django.utils.functional import Promise

    from approvals.models import Activity, Approval, Decision
    from approvals.said import Said


class TooLate(Conflict):
    """The deadline has passed."""


def must_see(approval: Approval, person: who.Person) -> None:
    """Raises NotAllowed for who is no active user, Missing for who may not know that this exists."""
    if not who.is_person(person) or not person.is_active:
        raise NotAllowed(who.why_not(approval, person))
    if not Run.objects.visible_to(person).filter(pk=approval.run_id).exists():
        raise Missing(told(_("There is no approval %(id)s."), id=approval.pk))


def must_not_be_erased(approval: Approval) -> None:
    """Under the approval's lock, for whoever adds words to it. Raises Conflict."""
    if Tombstone.objects.filter(run=approval.run_id).exists():
        raise Conflict(_("This was erased together with its run; nothing can be said to it any more."))


def must_say_why(said: Said) -> None:
    if said.verdict == REJECT and not said.reason.strip():
        raise Invalid(_("Say why: the run gets your reason."), {"reason": [_("Choose or write a reason.")]})


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
        raise Conflict(told(_("%(what)s; nothing was changed."), what=recounted(approval.conclusion)))
    word, since = lowered(status_word(approval.outcome).word), clock_said(approval.decided_at)
    if approval.outcome in BY_DEADLINE:
        raise TooLate(
            told(
                _(
                    "Too late: the deadline has passed, and this is %(word)s since %(since)s; nothing was changed."
                ),
                word=word,
                since=since,
            )
        )
    raise Conflict(
        told(_("This is closed (%(word)s) since %(since)s; nothing was changed."), word=word, since=since)
    )


def must_be_revision(approval: Approval, revision: int | None) -> None:
    """Raises Conflict naming who changed what since the revision that a person looked at; None looks at any."""
    if revision is None or revision == approval.revision:
        return
    if not 1 <= revision < approval.revision:
        raise Conflict(
            told(
                _("There is no revision %(seen)s of this, it is at %(now)s; nothing was changed."),
                seen=revision,
                now=approval.revision,
            )
        )
    rows = [
        *approval.decisions.filter(revision__gt=revision).select_related("by"),
        *approval.activities.filter(revision__gt=revision).select_related("by", "to"),
    ]
    moved: dict[int, Activity | Decision] = {}
    for row in sorted(rows, key=lambda row: row.seq):
        moved.setdefault(row.revision, row)  # the row that moved the revision is the first that carries it
    said = in_turn([recounted(row) for row in moved.values()] or [_("it was changed")])
    raise Conflict(
        told(
            _(
                "This has changed since you looked at it (you saw revision %(seen)s, it is at %(now)s): %(said)s. "
                "Nothing was changed; look again, then decide."
            ),
            seen=revision,
            now=approval.revision,
            said=said,
        )
    )


def recounted(row: Activity | Decision) -> Promise:
    """ada approved this with edits at 14:06:09 CET on 2026-11-26."""
    who: str | Promise = someone(row.by) if row.by is not None else _("the engine")
    if getattr(row, "verdict", "") and row.instead_of is not None:
        who = told(_("%(who)s for %(whom)s"), who=who, whom=someone(row.instead_of))
    to = someone(row.to) if not hasattr(row, "verdict") and row.to is not None else None
    at = clock_said(row.at)
    if to is not None and row.kind == ASSIGNED:
        return told(_("%(who)s assigned this to %(to)s at %(at)s"), who=who, to=to, at=at)
    if to is not None and row.kind == DELEGATED:
        return told(_("%(who)s gave their part to %(to)s at %(at)s"), who=who, to=to, at=at)
    done = DID.get(getattr(row, "verdict", "") or row.kind)
    what = told(done if done is not None else f"%(who)s {row.kind}", who=who)
    return told(_("%(what)s at %(at)s"), what=what, at=at)
