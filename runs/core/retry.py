"""Retry policies: a policy returns a decision, it never acts."""

from __future__ import annotations

from dataclasses import dataclass

from runs.core.errors import Ambiguous, EffectFailed, Expired, Permanent, Rejected, Transient

LONGEST_SECONDS = 30 * 24 * 3600.0  # of any wait before a further try, whoever asked for it

NEVER: tuple[type[BaseException], ...] = (Permanent, Rejected, Expired, EffectFailed)


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Try again after `delay` seconds, or give up when `delay` is None; `reason` says why in words."""

    delay: float | None
    reason: str

    @property
    def again(self) -> bool:
        return self.delay is not None


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter and a cap.

    `attempts` counts every try, the first included. The delay before try n + 1 is
    first * factor ** (n - 1), at most `cap`, spread by +-`jitter` (a share of it), all in seconds; an
    error's own `retry_after` is a lower bound that neither cap nor jitter shortens. Nothing waits longer than 30 days.
    """

    attempts: int = 3
    first: float = 1.0
    factor: float = 2.0
    cap: float = 300.0
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)
    never: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"Retry(attempts={self.attempts}): at least 1, the first try counts")
        if not (self.first >= 0 and self.cap >= 0 and self.factor >= 1 and 0 <= self.jitter <= 1):
            raise ValueError("Retry: first and cap are seconds >= 0, factor >= 1, jitter a share from 0 to 1")

    def decide(self, attempt: int, error: BaseException, chance: float) -> RetryDecision:
        """What follows failed try number `attempt` (from 1); `chance` in [0, 1) places the jitter."""
        if isinstance(error, NEVER + self.never) or not isinstance(error, self.on):
            return RetryDecision(None, f"{type(error).__name__} is not retried")
        if attempt >= self.attempts:
            return RetryDecision(None, f"{attempt} of {self.attempts} attempts used")
        delay = min(self._back_off(attempt), self.cap, LONGEST_SECONDS)
        delay *= 1 + self.jitter * (2 * chance - 1)
        asked = getattr(error, "retry_after", None) if isinstance(error, (Transient, Ambiguous)) else None
        delay = min(max(delay, asked or 0.0), LONGEST_SECONDS)
        return RetryDecision(delay, f"attempt {attempt} of {self.attempts} failed")

    def _back_off(self, attempt: int) -> float:
        try:
            return self.first * float(self.factor) ** min(attempt - 1, 64)
        except OverflowError:
            return LONGEST_SECONDS if self.first else 0.0
