"""What approvals write when a question opens or closes, inside the engine's own transaction; and when a person chooses
a language."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any  # a signal's further arguments

from django.contrib.auth.models import Group
from django.db.models import Q
from django.dispatch import receiver

from approvals.contracts import contract_of
from approvals.forms.schemas import root_of
from approvals.models import Activity, Approval, NoticeWish, Reviewer
from approvals.reminders import next_reminder
from approvals.rules import unknown_here
from approvals.stages import FIRST
from approvals.stages import of_request as stages_of_request
from approvals.text import storable_text
from approvals.words import BY_DEADLINE, BY_PEOPLE, CLOSED, EXPIRED, OPENED, RESPOND, SUPERSEDED
from runs.core import codec
from runs.core.errors import Permanent
from runs.hooks import interrupt_closed, interrupt_opened, language_chosen, run_ended

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from runs.models import LedgerEntry, Run


@receiver(interrupt_opened, dispatch_uid="approvals.open")
def open_approval(
    run: Run, entry: LedgerEntry, request: dict[str, Any], now: datetime, **_signal: Any
) -> None:
    if missing := unknown_here(run, request):
        raise Permanent(
            f"“{request['question']}”: the rule {missing[0]} cannot be found by who decides; define it, or import it, "
            f"in the module of {run.graph}'s nodes"
        )
    contract = contract_of(request)
    if contract is not None and request.get("on_expiry") == "auto_approve":
        raise Permanent(
            f"“{request['question']}”: a request of {contract.form} form takes an answer for each action, so it cannot "
            "be approved by itself; leave out on_expiry, or ask with another payload"
        )
    stages = stages_of_request(request)
    first = next((number for number, stage in enumerate(stages, FIRST) if stage["needed"]), FIRST)
    escalate = request.get("escalate")
    approval = Approval(
        run=run,
        entry=entry,
        graph=run.graph,
        title=storable_text(request["question"]),
        body=storable_text(request.get("why") or ""),
        verdicts=[RESPOND] if contract is not None else list(request["verdicts"]),
        stage=first,
        stages=stages,
        quorum=stages[first - FIRST]["quorum"] if stages else request.get("quorum") or 1,
        risk=request.get("risk") or "low",
        due_at=entry.due_at,
        remind_at=next_reminder(now, entry.due_at, now),
        escalate_at=now + timedelta(seconds=escalate["after"]) if escalate else None,
        has_broken_form=bool(request.get("schema")) and not root_of(request["schema"]),
        on_expiry=request.get("on_expiry") or "expired",
        proposal_digest=codec.digest(codec.dumps(request["payload"])),
        opened_at=now,
    )
    rows = _named(approval, request)
    approval.is_unnamed = not any(not row.excluded for row in rows)
    approval.save(force_insert=True)
    Reviewer.objects.bulk_create(rows)
    approval.append(Activity(kind=OPENED, at=now))
    Reviewer.objects.filter(approval__run=run, live=False).update(live=True)  # of a run that was repaired


def _named(approval: Approval, request: dict[str, Any]) -> list[Reviewer]:
    """A row for each name in each stage, and for each that is excluded."""
    stages = [stage["reviewers"] for stage in request.get("stages") or ()] or [request["reviewers"]]
    fixed = _members({name for names in stages for name in names}) if request.get("fixed") else {}
    rows = []
    for number, names in enumerate(stages, FIRST):
        for name in dict.fromkeys(names):
            group = name if name in fixed else ""
            for one in fixed.get(name, [name]):
                rows.append(Reviewer(approval=approval, name=one, group=group, stage=number))
    once = {(row.name, row.stage): row for row in reversed(rows)}
    excluded = dict.fromkeys(request.get("exclude") or ())
    return [
        *reversed(once.values()),
        *(Reviewer(approval=approval, name=name, excluded=True) for name in excluded),
    ]


def _members(names: set[str]) -> dict[str, list[str]]:
    """The user names in each of these groups as it is now; a group without members has nobody, also later."""
    members: dict[str, list[str]] = {}
    for group in Group.objects.filter(name__in=names).prefetch_related("user_set"):
        people = sorted(person.get_username() for person in group.user_set.all() if person.is_active)
        members[group.name] = people
    return members


@receiver(interrupt_closed, dispatch_uid="approvals.close")
def close_approval(run: Run, entry: LedgerEntry, outcome: str, now: datetime, **_signal: Any) -> None:
    """No person gave this outcome: the deadline did, or the run, which asked anew or ended.

    Superseded may also be what was approved: it spoke of something that has changed before it was done.
    """
    closing = Q(outcome="") | Q(outcome__in=BY_PEOPLE) if outcome == SUPERSEDED else Q(outcome="")
    approval = Approval.objects.select_for_update().filter(closing, entry=entry).first()
    if approval is None:
        return
    kind = EXPIRED if outcome in BY_DEADLINE else CLOSED
    approval.close(Activity(kind=kind, text=outcome, at=now), outcome, now)


@receiver(run_ended, dispatch_uid="approvals.rest")
def let_reviewers_rest(run: Run, **_signal: Any) -> None:
    """Nothing is asked of an ended run; whose inbox it is looked for in no longer counts."""
    Reviewer.objects.filter(approval__run=run, live=True).update(live=False)


@receiver(language_chosen, dispatch_uid="approvals.speak")
def write_in(person: User, language: str, **_signal: Any) -> None:
    NoticeWish.speak(person, language)
