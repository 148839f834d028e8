"""States of test graphs: a log, and one with values of many types inside each other."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from runs.models import Run


class Log(BaseModel):
    log: list[str] = []


def log_of(run: Run) -> list[str]:
    return run.state_at()["log"]


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Inner(BaseModel):
    pair: tuple[int, ...] = ()
    level: Level = Level.LOW


class Outer(BaseModel):
    inner: Inner = Inner()
    many: dict[str, list[Inner]] = {}
    when: datetime | None = None
    price: Decimal = Decimal("1.10")
    names: set[str] = set()
