"""What a run's page shows of its mailbox."""

from __future__ import annotations

from dataclasses import dataclass

from runs.models import Run, Signal
from runs.pages import plain, words

SIGNALS_SHOWN = 200


@dataclass(frozen=True)
class Mail:
    """One signal. `status` is delivered, unread, or undelivered: the run has ended, and nothing will read it."""

    signal: Signal
    status: str
    payload: str
    by: str


def mailbox(run: Run) -> list[Mail]:
    """The latest signals, newest first."""
    rows = run.signals.order_by("-pk").select_related("consumed_by")[:SIGNALS_SHOWN]
    return [_mail(run, signal) for signal in rows]


def _mail(run: Run, signal: Signal) -> Mail:
    if signal.consumed_by_id is not None:
        status = "delivered"
    else:
        status = "undelivered" if run.ended else "unread"
    stored = plain.stored(signal.payload)
    payload = words.pretty(stored) if stored is not None else ""
    return Mail(signal, status, payload, plain.actor(signal.by))
