"""States of test graphs: a log, and one with values of many types inside each other."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum

from pydantic import BaseModel


class Log(BaseModel):
    log: list[str] = []


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
