"""A run in one sentence, and what befell it in a few words, for people who have ten seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.holding import NEEDS_DEPLOY, NEEDS_MIGRATION, Held
from runs.naming import apart
from runs.pages import words
from runs.pages.asking import WAITS, awaited
from runs.pages.plain import actor, clause, first_line
from runs.pages.recorded import of_repairs

if TYPE_CHECKING:
    from runs.models import Checkpoint, LedgerEntry, Run

WAITS_TOLD = 3  # in one sentence; more of them are counted


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the moment since when it holds; `status` is the look, which in_doubt overrides."""

    text: str
    status: str
    since: datetime | None = None
    due_at: datetime | None = None


def about(
    run: Run,
    entries: Iterable[LedgerEntry],
    last: Checkpoint | None,
    now: datetime,
    held: Held | None = None,
) -> Sentence:
    """The run as it stands. `entries` are those of the step in progress that are open or in doubt.

    `held`: why no worker takes it, if it is due.
    """
    entries = list(entries)
    if held is not None:
        needs = {NEEDS_DEPLOY: _("needs deploy"), NEEDS_MIGRATION: _("needs migration")}[held.needs]
        text = _("Held, %(needs)s: no worker serves version %(version)s")
        since = last.at if last is not None else run.created_at
        return Sentence(text % {"needs": needs, "version": run.version}, "held", since)
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
    if run.wake_at is None:
        return Sentence(
            _("Waiting for its turn among the children of its parent"), run.status, run.created_at
        )
    return Sentence(_("Waiting for a worker to begin"), run.status, run.created_at)


def _running(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    since = last.at if last is not None else run.created_at
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
    open_ones = [entry for entry in entries if entry.status == "open" and entry.kind in WAITS]
    since = min((entry.opened_at for entry in open_ones), default=last.at if last else run.created_at)
    due_at = min((entry.due_at for entry in open_ones if entry.due_at), default=None)
    if not open_ones:
        sent = next((entry for entry in entries if entry.status == "open" and entry.tried_at), None)
        if sent is not None:
            if sent.due_at is not None and sent.due_at <= now:
                text = _("%(call)s was sent and no answer came; the next worker looks into what became of it")
                return Sentence(text % {"call": sent.name}, run.status, sent.tried_at)
            text = _("%(call)s was sent and no answer came; what became of it is looked into")
            return Sentence(text % {"call": sent.name}, run.status, sent.tried_at, sent.due_at)
        answered = next(
            (entry for entry in entries if entry.status == "done" and entry.taken_at is None), None
        )
        if answered is not None:
            return Sentence(
                _("Answered by %(by)s; about to go on") % {"by": apart(actor(answered.answered_by))},
                run.status,
                since,
            )
        return Sentence(_("Waiting at %(node)s") % {"node": run.node}, run.status, since)
    told = open_ones if all(entry.kind == "interrupt" for entry in open_ones) else None
    if len(open_ones) > WAITS_TOLD or told is not None and len(told) > 1:
        text = ngettext("Waiting for %(many)s answer", "Waiting for %(many)s answers", len(open_ones))
        return Sentence(text % {"many": len(open_ones)}, run.status, since, due_at)
    each = _(" and ").join(map(awaited, sorted(open_ones, key=lambda entry: entry.pk)))
    return Sentence(_("Waiting for %(each)s") % {"each": each}, run.status, since, due_at)


def _retrying(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    if last is not None and last.kind == "pace":
        text = _("Waiting in line (%(rate)s)") % {"rate": first_line(last.reason)}
        return Sentence(text, run.status, last.at, run.wake_at)
    reason = clause(last.reason if last is not None and last.reason else run.error)
    text = _("Try %(attempt)s of %(node)s failed") % {"attempt": run.attempt, "node": run.node}
    if run.ending:
        text = _("A try failed")
    if reason:
        text = f"{text}: {apart(reason)}"
    begin = last.at if last else None
    if run.wake_at is not None and run.wake_at <= now:
        return Sentence(_("%(text)s; the next one is due now") % {"text": text}, run.status, begin)
    return Sentence(text, run.status, begin, run.wake_at)


def _completed(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    took = words.span((run.finished_at or now) - run.created_at)
    text = ngettext("Completed %(many)s step in %(took)s", "Completed %(many)s steps in %(took)s", run.step)
    return Sentence(text % {"many": run.step, "took": took}, run.status, run.finished_at)


def _failed(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    reason = clause(run.error) if run.error_kind != "poison" else ""  # it says the same again
    text = str(FAILURES.get(run.error_kind, _("Failed in %(node)s"))) % {"node": run.node}
    status = run.error_kind if run.error_kind in ("rejected", "expired") else run.status
    said = f"{text}: {apart(reason)}" if reason else text
    if run.closed_at is not None and last is not None and last.kind == "close":
        said = _("%(ended)s; closed by %(actor)s") % {"ended": said, "actor": apart(actor(last.actor))}
    return Sentence(said, status, run.finished_at)


def _cancelled(run: Run, entries: list[LedgerEntry], last: Checkpoint | None, now: datetime) -> Sentence:
    text = (
        _("Cancelled by %(actor)s") % {"actor": apart(actor(last.actor))}
        if last is not None
        else _("Cancelled")
    )
    reason = clause(last.reason) if last is not None else ""
    return Sentence(f"{text}: {apart(reason)}" if reason else text, run.status, run.finished_at)


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
    "pace": gettext_lazy("waits in line"),
    "complete": gettext_lazy("completed"),
    "fail": gettext_lazy("failed"),
    "cancel": gettext_lazy("cancelled"),
    "hand_back": gettext_lazy("handed back"),
    "repair": gettext_lazy("repaired"),
    "migrate": gettext_lazy("migrated"),
    "compensate": gettext_lazy("begins to undo"),
    "fork": gettext_lazy("forked"),
    "settle": gettext_lazy("settled"),
    "close": gettext_lazy("closed"),
}


def kind(checkpoint: Checkpoint) -> str:
    """The kind of a checkpoint as a reader says it."""
    return str(KINDS.get(checkpoint.kind, checkpoint.kind.replace("_", " ")))


def happened(event: Checkpoint) -> str:
    """What befell a step, from the checkpoint that says so."""
    reason = first_line(event.reason)
    if event.kind in ("repair", "fork"):
        reason = of_repairs.retold(reason)
    said = {
        "lost": _("Its worker died or fell silent"),
        "retry": _("Try %(attempt)s failed") % {"attempt": event.attempt},
        "pace": _("Waited in line"),
        "hand_back": _("Handed back by %(actor)s") % {"actor": apart(actor(event.actor))},
        "compensate": _("Began to undo what was done"),
        "fail": _("Failed"),
        "cancel": _("Cancelled by %(actor)s") % {"actor": apart(actor(event.actor))},
        "migrate": _("Migrated by %(actor)s") % {"actor": apart(actor(event.actor))},
        "settle": _("What was in doubt was settled by %(actor)s") % {"actor": apart(actor(event.actor))},
        "repair": _("Repaired by %(actor)s") % {"actor": apart(actor(event.actor))},
        "close": _("Closed by %(actor)s") % {"actor": apart(actor(event.actor))},
        "fork": _("Forked by %(actor)s") % {"actor": apart(actor(event.actor))},
    }.get(event.kind, kind(event))
    return f"{said}: {apart(reason)}" if reason and event.kind != "lost" else said
