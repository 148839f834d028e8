"""A run that sleeps and waits in turn, so that what wakes it can be compared with when it woke."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from runs import END, Graph


class Naps(BaseModel):
    seconds: float
    rounds: int
    said: list[str] = []


naps = Graph("naps", state=Naps)


@naps.node(then=("nap", END))
def nap(run: Any, state: Naps) -> str:
    run.sleep(timedelta(seconds=state.seconds))
    state.said.append(run.wait_for("go", timeout=timedelta(minutes=5)))
    return END if len(state.said) == state.rounds else "nap"
