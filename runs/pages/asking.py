"""What an entry of the ledger asks, and what it was answered with, each in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.naming import apart, full_names
from runs.pages import words
from runs.pages.plain import actor, first_line, short, stored

if TYPE_CHECKING:
    from runs.models import LedgerEntry

WAITS = frozenset(
    {"interrupt", "signal", "timer", "child"}
)  # kinds of entries that a run can wait for without a worker

LONGEST_QUESTION = 140  # letters of it in a sentence; its ledger entry and its page have all of it


def awaited(entry: LedgerEntry) -> str:
    """What an open wait waits for, as the end of a sentence."""
    if entry.kind == "timer":
        return _("its timer")
    if entry.kind == "child":
        return awaited_children(entry)
    if entry.kind == "signal":
        return _("the signal “%(name)s”") % {"name": words.printable(entry.name)}
    asked = stored(entry.request)
    question = Truncator(words.printable(asked.get("question") or entry.name)).chars(LONGEST_QUESTION)
    return _("%(people)s to answer “%(question)s”") % {"people": reviewers(asked), "question": question}


def awaited_children(entry: LedgerEntry) -> str:
    items = (stored(entry.request) or {}).get("items")
    if not isinstance(items, int):
        return _("its child %(graph)s") % {"graph": words.printable(entry.name)}
    text = ngettext("its %(many)s child %(graph)s", "its %(many)s children %(graph)s", items)
    return text % {"many": items, "graph": words.printable(entry.name)}


def started(entry: LedgerEntry) -> str:
    """The graph of a child, or of several, and what it was given."""
    request = stored(entry.request)
    if not isinstance(request, dict):
        return ""
    given = request.get("input", request.get("run"))
    if isinstance(request.get("items"), int):
        return awaited_children(entry)
    parts = [f"{name}={short(value)}" for name, value in given.items()] if isinstance(given, dict) else []
    graph = words.printable(entry.name)
    return f"{graph}: {Truncator(', '.join(parts) or short(given)).chars(120)}" if given else graph


def asked(entry: LedgerEntry) -> str:
    """What an entry asks, in a line: the question, or the call with its arguments."""
    request = stored(entry.request)
    if entry.compensates_id is not None and isinstance(request, dict):
        request = request.get("arguments")  # of the call that is undone
    if entry.kind == "child" and isinstance(request, dict):
        given = request.get("input", request.get("run"))
        return short(given, 120) if given is not None else awaited_children(entry)
    if entry.kind == "signal":
        return _("the signal “%(name)s”") % {"name": words.printable(entry.name)}
    if entry.kind == "timer" and entry.due_at is not None:
        until = words.dated(timezone.localtime(entry.due_at), "D j M Y, H:i:s T")
        return _("until %(moment)s") % {"moment": until}
    if entry.kind == "interrupt" and isinstance(request, dict) and request.get("question"):
        return words.printable(str(request["question"]))
    if isinstance(request, dict):
        parts = [f"{name}={short(value)}" for name, value in request.items()]
        return ", ".join(parts)
    return short(request) if request is not None else ""


def answered(entry: LedgerEntry) -> str:
    """What an entry was answered with, in a line."""
    if entry.error:
        return first_line(entry.error)
    if entry.result is None:
        return ""
    result = stored(entry.result)
    if entry.kind == "timer":
        return ""
    if entry.kind == "child" and isinstance(result, dict):
        return _ended(result)
    if entry.kind == "signal":
        by = apart(actor(entry.answered_by))
        if result is None:
            return _("came from %(by)s") % {"by": by}
        return _("%(payload)s, from %(by)s") % {"payload": short(result, 120), "by": by}
    if entry.kind == "interrupt" and isinstance(result, dict) and (outcome := result.get("outcome")):
        said = str(words.status_word(outcome).word)
        return (
            _("%(said)s by %(by)s") % {"said": said, "by": apart(actor(str(result["by"])))}
            if result.get("by")
            else said
        )
    return short(result, 120)


def _ended(result: dict[str, Any]) -> str:
    """How a child ended, or how many of many did in each way."""
    if "status" not in result:
        told = [(many, words.status_word(status).word) for status, many in result.items() if many]
        return ", ".join(f"{many} {str(word).lower()}" for many, word in told)
    said = str(words.status_word(result["status"]).word)
    reason = first_line(result.get("error") or "")
    return f"{said}: {apart(reason)}" if reason else said


def shown(entry: LedgerEntry) -> str:
    """The status that people see: a wait that timed out has not failed."""
    return "expired" if entry.kind in WAITS and entry.error_kind == "expired" else entry.status


def reviewers(request: dict[str, Any]) -> str:
    """Who is asked: pm, or 2 of pm, or ops or ada, or 2 of pm, then finance."""
    if stages := [stage for stage in request.get("stages") or () if stage["needed"]]:
        return _(", then ").join(_people(stage) for stage in stages)
    return _people(request)


def _people(request: dict[str, Any]) -> str:
    named = [str(name) for name in request.get("reviewers") or []]
    people = _(" or ").join(map(apart, full_names(named))) if named else _("a person")
    quorum = request.get("quorum") or 1
    return _("%(quorum)s of %(people)s") % {"quorum": quorum, "people": people} if quorum > 1 else people
