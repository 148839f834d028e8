"""A run in one sentence, and its parts in a few words, for people who have ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.core import codec
from runs.core.errors import CodecError
from runs.pages import words

if TYPE_CHECKING:
    from runs.models import Checkpoint, LedgerEntry, Run

FIRST_LINE = 160  # letters of an error that fit into a sentence


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the moment since when it holds; `status` is the look, which in_doubt overrides."""

    text: str
    status: str
    since: datetime | None = None
    due_at: datetime | None = None


def about(run: Run, entries: Iterable[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    """The run as it stands. `entries` are those of the step in progress that are open or in doubt."""
    entries = list(entries)
    doubtful = next((entry for entry in entries if entry.status == "in_doubt"), None)
    if doubtful is not None and run.ended:
        ended = _SENTENCES[run.status](run, entries, last, now)
        text = _("%(ended)s; whether %(call)s happened is still open")
        return Sentence(text % {"ended": ended.text, "call": doubtful.name}, "in_doubt", ended.since)
    if doubtful is not None:
        return Sentence(
            _("Waiting for someone to say whether %(call)s happened") % {"call": doubtful.name},
            "in_doubt",
            doubtful.tried_at or doubtful.opened_at,
        )
    return _SENTENCES[run.status](run, entries, last, now)


def _created(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    return Sentence(_("Waiting for a worker to begin"), run.status, run.created_at)


def _running(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    since = last.at if last is not None else run.created_at
    if run.ending:
        return Sentence(
            _("Undoing what was done, then %(ending)s") % {"ending": run.ending}, run.status, since
        )
    if run.wake_at is not None and run.wake_at < now:
        return Sentence(
            _("Its worker fell silent at %(node)s; the next one takes it over") % {"node": run.node},
            run.status,
            since,
        )
    text = _("Running %(node)s, step %(step)s") % {"node": run.node, "step": run.step + 1}
    if run.attempt:
        text = _("%(running)s, try %(attempt)s") % {"running": text, "attempt": run.attempt + 1}
    return Sentence(text, run.status, since)


def _waiting(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    open_ones = [entry for entry in entries if entry.status == "open" and entry.kind == "interrupt"]
    since = min((entry.opened_at for entry in open_ones), default=last.at if last else run.created_at)
    due_at = min((entry.due_at for entry in open_ones if entry.due_at), default=None)
    if not open_ones:
        sent = next((entry for entry in entries if entry.status == "open" and entry.tried_at), None)
        if sent is not None:
            text = _("%(call)s was sent and no answer came; what became of it is looked into") % {
                "call": sent.name
            }
            return Sentence(text, run.status, sent.tried_at, sent.due_at)
        answered = next(
            (entry for entry in entries if entry.status == "done" and entry.taken_at is None), None
        )
        if answered is not None:
            return Sentence(
                _("Answered by %(by)s; about to go on") % {"by": answered.answered_by}, run.status, since
            )
        return Sentence(_("Waiting at %(node)s") % {"node": run.node}, run.status, since)
    if len(open_ones) > 1:
        text = ngettext("Waiting for %(many)s answer", "Waiting for %(many)s answers", len(open_ones))
        return Sentence(text % {"many": len(open_ones)}, run.status, since, due_at)
    asked = stored(open_ones[0].request)
    people = reviewers(asked)
    question = words.printable(asked.get("question") or open_ones[0].name)
    text = _("Waiting for %(people)s to answer “%(question)s”") % {"people": people, "question": question}
    return Sentence(text, run.status, since, due_at)


def _retrying(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    reason = first_line(last.reason if last is not None and last.reason else run.error)
    text = _("Try %(attempt)s of %(node)s failed") % {"attempt": run.attempt, "node": run.node}
    if reason:
        text = f"{text}: {reason}"
    begin = last.at if last else None
    if run.wake_at is not None and run.wake_at <= now:
        return Sentence(_("%(text)s; the next one is due now") % {"text": text}, run.status, begin)
    return Sentence(text, run.status, begin, run.wake_at)


def _completed(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    took = words.span((run.finished_at or now) - run.created_at)
    text = ngettext("Completed %(many)s step in %(took)s", "Completed %(many)s steps in %(took)s", run.step)
    return Sentence(text % {"many": run.step, "took": took}, run.status, run.finished_at)


def _failed(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    reason = first_line(run.error)
    text = str(FAILURES.get(run.error_kind, _("Failed in %(node)s"))) % {"node": run.node}
    status = run.error_kind if run.error_kind in ("rejected", "expired") else run.status
    return Sentence(f"{text}: {reason}" if reason else text, status, run.finished_at)


def _cancelled(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    text = _("Cancelled by %(actor)s") % {"actor": actor(last.actor)} if last is not None else _("Cancelled")
    reason = first_line(last.reason) if last is not None else ""
    return Sentence(f"{text}: {reason}" if reason else text, run.status, run.finished_at)


_SENTENCES = {
    "created": _created,
    "running": _running,
    "waiting": _waiting,
    "retrying": _retrying,
    "completed": _completed,
    "failed": _failed,
    "cancelled": _cancelled,
}

FAILURES = {
    "permanent": gettext_lazy("Failed in %(node)s"),
    "exhausted": gettext_lazy("Failed in %(node)s, all tries used up"),
    "poison": gettext_lazy("Stopped: %(node)s kills every worker that takes it"),
    "loop_limit": gettext_lazy("Stopped at the step limit in %(node)s"),
    "diverged": gettext_lazy("Stopped in %(node)s: a second execution asked for other writes than the first"),
    "bad_state": gettext_lazy("Stopped in %(node)s: its state cannot be stored or read"),
    "rejected": gettext_lazy("Rejected in %(node)s"),
    "expired": gettext_lazy("Expired in %(node)s, for nobody answered in time"),
}

KINDS = {
    "start": gettext_lazy("started"),
    "claim": gettext_lazy("claimed"),
    "lost": gettext_lazy("lost its worker"),
    "wake": gettext_lazy("woke"),
    "step": gettext_lazy("step"),
    "wait": gettext_lazy("waits"),
    "retry": gettext_lazy("tries again"),
    "complete": gettext_lazy("completed"),
    "fail": gettext_lazy("failed"),
    "cancel": gettext_lazy("cancelled"),
    "hand_back": gettext_lazy("handed back"),
    "repair": gettext_lazy("repaired"),
    "migrate": gettext_lazy("migrated"),
    "fork": gettext_lazy("forked"),
}


def kind(checkpoint: Checkpoint) -> str:
    """The kind of a checkpoint as a reader says it."""
    return str(KINDS.get(checkpoint.kind, checkpoint.kind.replace("_", " ")))


def happened(event: Checkpoint) -> str:
    """What befell a step, from the checkpoint that says so."""
    reason = first_line(event.reason)
    said = {
        "lost": _("Its worker died or fell silent"),
        "retry": _("Try %(attempt)s failed") % {"attempt": event.attempt},
        "hand_back": _("Handed back by %(actor)s") % {"actor": actor(event.actor)},
        "fail": _("Failed"),
        "cancel": _("Cancelled by %(actor)s") % {"actor": actor(event.actor)},
    }.get(event.kind, kind(event))
    return f"{said}: {reason}" if reason and event.kind != "lost" else said


def asked(entry: LedgerEntry) -> str:
    """What an entry asks, in a line: the question, or the call with its arguments."""
    request = stored(entry.request)
    if entry.kind == "interrupt" and isinstance(request, dict) and request.get("question"):
        return words.printable(str(request["question"]))
    if isinstance(request, dict):
        parts = [f"{name}={_short(value)}" for name, value in request.items()]
        return ", ".join(parts)
    return _short(request) if request is not None else ""


def answered(entry: LedgerEntry) -> str:
    """What an entry was answered with, in a line."""
    if entry.error:
        return first_line(entry.error)
    if entry.result is None:
        return ""
    result = stored(entry.result)
    if entry.kind == "interrupt" and isinstance(result, dict) and (outcome := result.get("outcome")):
        said = str(words.status_word(outcome).word)
        return _("%(said)s by %(by)s") % {"said": said, "by": result["by"]} if result.get("by") else said
    return _short(result, 120)


def reviewers(request: dict[str, Any]) -> str:
    """Who is asked: pm, or 2 of pm, or ops or ada."""
    named = [str(name) for name in request.get("reviewers") or []]
    people = _(" or ").join(named) if named else _("a person")
    quorum = request.get("quorum") or 1
    return _("%(quorum)s of %(people)s") % {"quorum": quorum, "people": people} if quorum > 1 else people


def actor(name: str) -> str:
    """Workers are named host:boot:pid:started, of which a reader needs host and pid; people are `user NAME`."""
    parts = name.split(":")
    return (
        _("worker %(host)s/%(pid)s") % {"host": parts[0], "pid": parts[2]}
        if len(parts) == 4
        else name.removeprefix("user ")
    )


def first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= FIRST_LINE else line[: FIRST_LINE - 1] + "…"


def stored(text: str | None) -> Any:
    """A stored value as a plain tree; what cannot be read is shown as its text."""
    if text is None:
        return None
    try:
        return codec.decode(text)
    except CodecError:
        return text


def _short(value: Any, most: int = 48) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 3:
        return ngettext("%(many)s item", "%(many)s items", len(value)) % {"many": len(value)}
    text = value if isinstance(value, str) else words.pretty_line(value)
    text = words.printable(" ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"
