"""What approvals write when a question opens or closes, inside the engine's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # a signal's further arguments

from django.dispatch import receiver

from approvals.models import Activity, Approval, Reviewer
from approvals.text import storable_text
from approvals.words import BY_DEADLINE, CLOSED, EXPIRED, OPENED
from runs.core import codec
from runs.errors import Invalid
from runs.hooks import interrupt_closed, interrupt_opened

if TYPE_CHECKING:
    from datetime import datetime

    from runs.models import LedgerEntry, Run


@receiver(interrupt_opened, dispatch_uid="approvals.open")
def open_approval(
    run: Run, entry: LedgerEntry, request: dict[str, Any], now: datetime, **_signal: Any
) -> None:
    if request.get("stages"):
        raise Invalid(
            f"“{request['question']}” asks in stages, which approvals do not know; use quorum instead."
        )
    approval = Approval(
        run=run,
        entry=entry,
        graph=run.graph,
        title=storable_text(request["question"]),
        body=storable_text(request.get("why") or ""),
        verdicts=list(request["verdicts"]),
        quorum=request.get("quorum") or 1,
        risk=request.get("risk") or "low",
        due_at=entry.due_at,
        on_expiry=request.get("on_expiry") or "expired",
        proposal_digest=codec.digest(codec.dumps(request["payload"])),
        opened_at=now,
    )
    approval.save(force_insert=True)
    Reviewer.objects.bulk_create(
        Reviewer(approval=approval, name=name, excluded=excluded)
        for names, excluded in ((request["reviewers"], False), (request.get("exclude") or (), True))
        for name in dict.fromkeys(names)
    )
    approval.append(Activity(kind=OPENED, at=now))


@receiver(interrupt_closed, dispatch_uid="approvals.close")
def close_approval(run: Run, entry: LedgerEntry, outcome: str, now: datetime, **_signal: Any) -> None:
    """No person gave this outcome: the deadline did, or the run, which asked anew or ended."""
    approval = Approval.objects.select_for_update().filter(entry=entry, outcome="").first()
    if approval is None:
        return
    kind = EXPIRED if outcome in BY_DEADLINE else CLOSED
    approval.close(Activity(kind=kind, text=outcome, at=now), outcome, now)
