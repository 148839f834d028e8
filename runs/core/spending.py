"""What was spent, as `run.spend` records it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from runs.core import codec
from runs.core.codec import storable
from runs.core.errors import DurableError

NAME = "spend"  # of the values that tell of it


@storable
@dataclass(frozen=True, slots=True)
class Spent:
    tokens: int = 0
    usd: Decimal = Decimal(0)

    def __add__(self, more: Spent) -> Spent:
        return Spent(self.tokens + more.tokens, self.usd + more.usd)


def told_by(result: str) -> Spent:
    """By one recorded value of that name; what is not of that form is somebody's own, and tells of nothing."""
    try:
        value = codec.loads(result)
        if not isinstance(value, dict) or value.keys() != {"tokens", "usd"}:
            return Spent()
        tokens, usd = int(value["tokens"]), Decimal(str(value["usd"]))
    except (DurableError, InvalidOperation, TypeError, ValueError, OverflowError):
        return Spent()
    return Spent(tokens, usd) if usd.is_finite() else Spent()
