"""What the trail keeps of a refused decision, said again in the reader's language. The row keeps its English
(docs/adr/0033)."""

from __future__ import annotations

from functools import cache

from django.utils.translation import gettext, gettext_noop, override, pgettext_lazy

from approvals.text import respoken
from approvals.words import APPROVE, DID, EDIT, REJECT, RESPOND
from runs.naming import apart, full_names
from runs.pages.recorded import Sentences
from runs.pages.words import status_word

# Before a refusal stands what was tried, and before that how, where it was signed.
_TRIED = {
    APPROVE: pgettext_lazy("what was tried", "approve"),
    EDIT: pgettext_lazy("what was tried", "edit"),
    REJECT: pgettext_lazy("what was tried", "reject"),
    RESPOND: pgettext_lazy("what was tried", "respond"),
    "signature": pgettext_lazy("what was tried", "signature"),
}


def reminded(text: str) -> str:
    """`edit: mara rejected this at 19:20:12 UTC on 2026-11-30; nothing was changed.`, as a page says it."""
    tried = []
    while (parts := text.partition(": "))[1] and parts[0] in _TRIED:
        tried.append(str(_TRIED[parts[0]]))
        text = parts[2]
    return ": ".join([*tried, of_refusals.retold(text)])


class _Refusals(Sentences):
    def _told(self, name: str, value: str, within: bool) -> str:
        match name:
            case "what":
                return _deed(value)
            case "said":
                return "; ".join(map(_deed, value.split("; ")))
            case "word":
                return str(status_word(value.replace(" ", "_")).word).lower()
            case "who" | "to" | "people":
                return _named(value)
            case "since" | "when":
                return respoken(value)
            case _:
                return value


def _deed(text: str) -> str:
    """Who did what and when; anything else as it is."""
    what, at, moment = text.rpartition(" at ")
    return (
        gettext("%(what)s at %(at)s") % {"what": _deeds().retold(what), "at": respoken(moment)}
        if at
        else text
    )


@cache
def _deeds() -> _Refusals:
    with override("en"):
        return _Refusals(
            gettext_noop("%(who)s assigned this to %(to)s"),
            gettext_noop("%(who)s gave their part to %(to)s"),
            *map(str, DID.values()),
        )


def _named(names: str) -> str:
    """ada, bob or pm, or ada for bob: as pages call them."""
    who, stands_in, whom = names.partition(" for ")
    if stands_in:
        return gettext("%(who)s for %(whom)s") % {"who": _named(who), "whom": _named(whom)}
    some = [apart(name) for name in full_names(names.replace(" or ", ", ").split(", "))]
    return gettext(" or ").join([*filter(None, [", ".join(some[:-1])]), *some[-1:]])


of_refusals = _Refusals(
    # approvals/refusals.py
    gettext_noop("This was erased together with its run; nothing can be said to it any more."),
    gettext_noop(
        "Too late: the deadline has passed, and this is %(word)s since %(since)s; nothing was changed."
    ),
    gettext_noop("This is closed (%(word)s) since %(since)s; nothing was changed."),
    gettext_noop("There is no revision %(seen)s of this, it is at %(now)s; nothing was changed."),
    gettext_noop(
        "This has changed since you looked at it (you saw revision %(seen)s, it is at %(now)s): %(said)s. "
        "Nothing was changed; look again, then decide."
    ),
    # approvals/models/deciding.py
    gettext_noop("Too late: the deadline was %(when)s; nothing was changed."),
    gettext_noop("You voted at %(when)s, and a person votes once; to change your vote, take it back first."),
    gettext_noop("This operation id was used before, for something else; send a new one."),
    # approvals/who.py
    gettext_noop("You gave your part in this to %(who)s; take it back to decide yourself."),
    gettext_noop("Only a signed-in person can decide; sign in first."),
    gettext_noop("The account %(who)s is switched off, so it cannot decide."),
    gettext_noop("You started this run, so somebody else has to decide (four eyes)."),
    gettext_noop("This run works on your behalf, so somebody else has to decide (four eyes)."),
    gettext_noop("You are excluded from deciding this by the author of its graph."),
    gettext_noop("You have said yes in another stage of this; each stage asks other people."),
    gettext_noop("Nobody is named to decide this; ask the operators of its graph."),
    gettext_noop("It is the turn of %(people)s; you are asked in another stage."),
    gettext_noop("Only %(people)s can decide this, and you are not among them."),
    # approvals/signing.py
    gettext_noop("%(many)s wrong passwords in a row; wait a quarter of an hour, then sign again."),
    gettext_noop("This is not your password; nothing was signed."),
    # approvals/refusals.py; last, for others end so
    gettext_noop("%(what)s; nothing was changed."),
)
