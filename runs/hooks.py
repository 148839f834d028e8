"""What others may write beside the engine's own rows, inside the verb's transaction. Receivers only write rows."""

from __future__ import annotations

from django.dispatch import Signal

interrupt_opened = Signal()  # run, entry, request (dict), now
interrupt_closed = Signal()  # run, entry, outcome, now; not sent for an answer that a person gave
run_ended = Signal()  # run, now
# run, most, now: empty at most so many rows that tell what the run was about; return how many they were, and 0 when
# none is left. Sent again until all return 0, each time in a transaction of its own.
run_erasing = Signal()
language_chosen = Signal()  # person, language (of settings.LANGUAGES); what is sent to them follows it
