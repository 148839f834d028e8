"""What became of an effect in doubt, as a person says, or an answer: `LedgerEntry.settle`, and `Run.settle` once a run
has ended."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any  # results are any JSON

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.conf import conf
from runs.core import codec
from runs.core import ledger as core_ledger
from runs.core.errors import CodecError
from runs.core.words import storable_text
from runs.engine.closing import line_of
from runs.engine.transition import SETTLE, move
from runs.errors import Conflict, Invalid, Missing, TooEarly, status, told
from runs.models.entry import COMPENSATED, DONE, IN_DOUBT, OPEN, LedgerEntry
from runs.models.run import Run
from runs.unstorable import fault

OUTCOMES = ("happened", "not_happened", "give_up")


def settle(
    entry: LedgerEntry, run: Run, by: str, outcome: str, result: Any, reason: str, now: datetime
) -> None:
    """The verb; its docstring is at LedgerEntry.settle."""
    if entry.status != IN_DOUBT:
        raise Conflict(
            told(
                _("%(what)s is not in doubt (%(status)s); only what is in doubt is settled."),
                what=entry.key,
                status=status(entry.status),
            )
        )
    if entry.due_at is not None and entry.due_at > now:
        moment = entry.due_at.strftime("%H:%M:%S UTC")
        raise TooEarly(
            told(
                _("%(what)s: the earlier call may be under way until %(moment)s; settle it after that."),
                what=entry.key,
                moment=moment,
            )
        )
    changes = core_ledger.settled(core_ledger.Entry("", "", "", "", "", error=entry.error), outcome, result)
    if changes["status"] != OPEN:
        changes |= {"answered_at": now, "answered_by": by[:200], "effective_at": now, "taken_at": now}
    elif run.ended or run.ending and entry.compensates_id is None:
        changes |= {"status": "cancelled", "answered_at": now, "answered_by": by[:200]}
    else:
        changes |= {"answered_at": None, "answered_by": ""}
    if reason:
        changes["error"] = storable_text(f"{entry.error} Settled by {by}: {reason}".strip())
    if LedgerEntry.objects.filter(pk=entry.pk, status=IN_DOUBT).update(**changes) != 1:
        raise Conflict(told(_("%(what)s was settled in the meantime."), what=entry.key))
    if entry.compensates_id is not None and changes["status"] == DONE:
        undone = LedgerEntry.objects.filter(pk=entry.compensates_id, status=DONE)
        if undone.update(status=COMPENSATED) != 1:
            raise Conflict(told(_("%(what)s: what it undoes is not done."), what=entry.key))
    entry.refresh_from_db()
    if run.ended:
        move(run, SETTLE, now, actor=by, reason=reason, lines=[line_of(entry)])


def settle_by_answer(entry: LedgerEntry, run: Run, result: dict[str, Any], by: str, now: datetime) -> None:
    """The answer to the question about an effect in doubt. Raises Invalid where it does not say what happened."""
    said = result.get("payload")
    if not isinstance(said, dict) or said.get("outcome") not in OUTCOMES:
        raise Invalid(
            _("Say what happened: outcome is happened, not_happened or give_up."),
            {"$.outcome": [_("Choose happened, not_happened or give_up.")]},
        )
    doubted = LedgerEntry.objects.get(pk=entry.settles_id)
    doubted.settle(run, by, said["outcome"], said.get("result"), str(result.get("reason") or ""), now)


def settle_of_ended(
    run_id: uuid.UUID, by: str, key: str, outcome: str, reason: str, result: Any, step: int | None
) -> LedgerEntry:
    """The verb; its docstring is at Run.settle."""
    if outcome not in OUTCOMES:
        raise Invalid(_("Say what happened: outcome is happened, not_happened or give_up."))
    _refuse_unfit(result)
    with transaction.atomic():
        run, now = Run.objects.lock(run_id)
        entry = _in_doubt(run, key, step)
        if not run.ended:
            said = _(
                "Run %(run)s is live, and asks its operators what became of %(what)s: answer that question."
            )
            raise Conflict(told(said, run=run.short_id, what=key))
        entry.settle(run, by, outcome, result, reason, now)
    return entry


def _refuse_unfit(result: Any) -> None:
    try:
        text = codec.dumps(result)
    except CodecError as error:
        raise Invalid(fault(error), {"result": [fault(error)]}) from error
    if len(text.encode()) > conf.value_limit_bytes:
        said = told(_("Too long: %(most)s bytes are the most."), most=conf.value_limit_bytes)
        raise Invalid(told("result: %(fault)s", fault=said), {"result": [said]})
    secrets.refuse(text, "result")


def _in_doubt(run: Run, key: str, step: int | None) -> LedgerEntry:
    doubted = list(LedgerEntry.objects.filter(run=run, status=IN_DOUBT).order_by("id"))
    found = [entry for entry in doubted if entry.key == key and step in (None, entry.step)]
    if len(found) == 1:
        return found[0]
    if found:
        steps = ", ".join(str(entry.step) for entry in found)
        raise Invalid(
            told(_("%(what)s is in doubt in the steps %(steps)s; name one."), what=key, steps=steps)
        )
    there = ", ".join(entry.key for entry in doubted) or _("nothing")
    said = _("Run %(run)s has no effect %(what)s in doubt; in doubt is: %(there)s.")
    raise Missing(told(said, run=run.short_id, what=key, there=there))
