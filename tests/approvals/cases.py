"""Small builders of what tests of approvals begin with: a run that waits for people, and its open question."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from django.db import transaction

from approvals.models import Approval
from runs import hooks
from runs.core import codec
from runs.engine import clock
from runs.engine.ids import uuid7
from runs.models import LedgerEntry, Run

MAIL = {"to": "helen@example.com", "subject": "Brief", "body": "Dear Helen,\n\nthe brief.", "copies": 7}

_numbers = itertools.count(1)


def waiting_run(**fields: Any) -> Run:
    """A run parked in its first step."""
    run_id = uuid7()
    given = {
        "id": run_id,
        "root": run_id,
        "graph": "mailing",
        "version": 1,
        "status": "waiting",
        "node": "email",
        "attempt": 1,
        "created_at": clock.now(),
    }
    return Run.objects.create(**{**given, **fields})


def ask(
    payload: Any = MAIL,
    *,
    run: Run | None = None,
    reviewers: tuple[str, ...] = ("pm",),
    due: timedelta | None = None,
    **request: Any,
) -> Approval:
    """An open approval, opened as the engine does it: the entry, then the signal, in one transaction."""
    run = run or waiting_run()
    now = clock.now()
    key = f"question#{next(_numbers)}"
    asked = {
        "question": "Send the mail?",
        "why": "They **asked** for it.",
        "payload": payload,
        "name": key,
        "reviewers": list(reviewers),
        "due": due.total_seconds() if due else None,
        "on_expiry": "expired",
        "verdicts": ["approve", "edit", "reject"],
        "schema": None,
        "quorum": 1,
        "stages": [],
        "exclude": [],
        "risk": "low",
        "sign": False,
        "reasons": [],
        "call": None,
        "settles": None,
        "policy": None,
        **request,
    }
    text = codec.dumps(asked)
    with transaction.atomic():
        entry = LedgerEntry.objects.create(
            run=run,
            step=run.step + 1,
            key=key,
            kind="interrupt",
            name=key,
            request=text,
            request_digest=codec.digest(text),
            due_at=now + due if due else None,
            opened_at=now,
            awaited=True,
        )
        hooks.interrupt_opened.send(sender=LedgerEntry, run=run, entry=entry, request=asked, now=now)
    return Approval.objects.get(entry=entry)


def close(approval: Approval, outcome: str) -> None:
    """As the engine closes a question that no person answered."""
    with transaction.atomic():
        run, now = Run.objects.lock(approval.run_id)
        entry = LedgerEntry.objects.get(pk=approval.entry_id)
        hooks.interrupt_closed.send(sender=LedgerEntry, run=run, entry=entry, outcome=outcome, now=now)


def answer_of(approval: Approval) -> dict[str, Any] | None:
    """What the run gets, as it stands in the ledger; None while the question is open."""
    entry = LedgerEntry.objects.get(pk=approval.entry_id)
    return codec.loads(entry.result) if entry.status == "done" else None


def told(approval: Approval) -> list[str]:
    """The trail in short: ["opened", "edit by ada", "undone by ada"]."""
    from approvals.chain import trail

    return [
        f"{getattr(row, 'verdict', None) or row.kind}{f' by {row.by.username}' if row.by else ''}"
        for row in trail(Approval.objects.get(pk=approval.pk))
    ]
