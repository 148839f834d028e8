"""What a run's page shows of its mailbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.models import LedgerEntry, Run, Signal
from runs.pages import plain, words
from runs.pages.rows import refer

SIGNALS_SHOWN = 200


@dataclass(frozen=True)
class Mail:
    """One signal. `status` is delivered, unread, or undelivered: the run has ended, and nothing will read it."""

    signal: Signal
    status: str
    payload: str
    by: str


def mailbox(run: Run, entries: Sequence[LedgerEntry] = ()) -> list[Mail]:
    """The latest signals, newest first. `entries`: those of the run that are known already."""
    rows = list(run.signals.order_by("-pk")[:SIGNALS_SHOWN])
    refer(rows, "consumed_by", among=entries)
    return [_mail(run, signal) for signal in rows]


def _mail(run: Run, signal: Signal) -> Mail:
    if signal.consumed_by_id is not None:
        status = "delivered"
    else:
        status = "undelivered" if run.ended else "unread"
    stored = plain.stored(signal.payload)
    payload = words.pretty(stored) if stored is not None else ""
    return Mail(signal, status, payload, plain.actor(signal.by))
