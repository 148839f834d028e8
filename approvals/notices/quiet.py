"""Quiet hours of a person: mail waits until they end, unless a deadline would have passed by then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Quiet:
    """From `begin` until `end` by the clock of `zone`; over midnight if the end is earlier."""

    begin: time
    end: time
    zone: str

    def ends(self, now: datetime) -> datetime | None:
        """When the quiet hours end that `now` is in; None if it is in none."""
        here = now.astimezone(ZoneInfo(self.zone))
        clock = here.time()
        over_midnight = self.begin > self.end
        is_quiet = (
            clock >= self.begin or clock < self.end if over_midnight else self.begin <= clock < self.end
        )
        if not is_quiet:
            return None
        day = here.date() + timedelta(days=1) if over_midnight and clock >= self.begin else here.date()
        # A day on which the clock is put back has the hour twice, so the end may seem to have passed already.
        moments = (
            datetime.combine(day, self.end, ZoneInfo(self.zone)).replace(fold=fold).astimezone(UTC)
            for fold in (0, 1)
        )
        return next((moment for moment in moments if moment > now), now + timedelta(hours=1))
