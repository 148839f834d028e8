"""What others may write beside the engine's own rows, inside the verb's transaction. Receivers only write rows."""

from __future__ import annotations

from django.dispatch import Signal

interrupt_opened = Signal()  # run, entry, request (dict), now
interrupt_closed = Signal()  # run, entry, outcome, now; not sent for an answer that a person gave
run_ended = Signal()  # run, now
