"""What a call has beside its entry: its place among the calls of all workers, and the text that it shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any  # what a write returns

from runs.core.ledger import Entry
from runs.core.rate import Rate
from runs.engine.boundaries import boundary
from runs.engine.durably import durably_or_lost
from runs.engine.lease import Lease
from runs.engine.saying import Speaker
from runs.models.checkpoint import Checkpoint
from runs.models.live_text import LiveText
from runs.models.tool_rate import ToolRate


class RowMeanwhile:
    """The part of the row ledger that leaves nothing in the record."""

    lease: Lease
    step: int
    changing: threading.Lock
    speakers: dict[str, Speaker]
    _fenced: Callable[[Any], Any]

    def let_through(self, name: str, per_key: str, rate: Rate, in_line: bool) -> float:
        in_line, lease = in_line or self._was_next(f"{name}, {rate.often}"), self.lease
        ours = partial(ToolRate.objects.let_through, lease.run_id, lease.fence)

        def take() -> tuple[float] | None:
            wait = ours(name, per_key, rate, in_line=in_line)
            return None if wait is None else (wait,)

        boundary("let through")
        [wait] = self._fenced(durably_or_lost(take))  # done again it counts twice, which is never too many
        boundary("was let through")
        return wait

    def _was_next(self, line: str) -> bool:
        """Whether the run was let go for this rate before its claim. Once: its next call waits as all others do."""
        with self.changing:
            is_its_turn = self._waited_in == line
            if is_its_turn:
                self._waited_in = ""
        return is_its_turn

    @cached_property
    def _waited_in(self) -> str:
        """The line that the checkpoint before the claim's speaks of; "" for none."""
        before = Checkpoint.objects.filter(run_id=self.lease.run_id, seq=self.lease.seq - 1, kind="pace")
        return durably_or_lost(before.values_list("reason", flat=True).first) or ""

    def listen(self, entry: Entry) -> Speaker:
        lease = self.lease
        speaker = Speaker(lease.run_id, lease.fence, self.step, entry.key, entry.name)
        with self.changing:
            self.speakers[entry.key] = speaker
        return speaker

    def hush(self, entry: Entry) -> None:
        if self._spoken(entry) is not None:
            durably_or_lost(partial(LiveText.objects.hush, self.lease.run_id, self.step, entry.key))

    def _spoken(self, entry: Entry) -> Speaker | None:
        """Who spoke in that call and left a row; it says no more."""
        if not self.speakers:
            return None
        with self.changing:
            speaker = self.speakers.pop(entry.key, None)
        if speaker is None:
            return None
        speaker.end()
        return speaker if speaker.has_row else None
